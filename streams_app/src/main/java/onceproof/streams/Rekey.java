package onceproof.streams;

import java.util.List;
import java.util.function.BiFunction;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;

/** A processor of the Processor API that changes the key of each record. */
final class Rekey<K, V> implements Processor<K, V, K, V> {

    private final BiFunction<K, V, K> key;
    private ProcessorContext<K, V> context;

    private Rekey(BiFunction<K, V, K> key) {
        this.key = key;
    }

    /** The stream that it makes of a stream, from 3.3.0 on (KIP-820). */
    @SuppressWarnings("unchecked")
    static <K, V> KStream<K, V> applied(KStream<K, V> stream, BiFunction<K, V, K> key) {
        ProcessorSupplier<K, V, K, V> supplier = () -> new Rekey<>(key);
        List<Class<?>> types = List.of(ProcessorSupplier.class, String[].class);
        return (KStream<K, V>) Newer.call(stream, KStream.class, "process", types, supplier, new String[0]);
    }

    @Override
    public void init(ProcessorContext<K, V> context) {
        this.context = context;
    }

    @Override
    public void process(Record<K, V> record) {
        context.forward(record.withKey(key.apply(record.key(), record.value())));
    }
}
