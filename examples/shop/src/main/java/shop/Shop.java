package shop;

import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.context.annotation.Bean;

/** Sums up the orders of each customer. */
@SpringBootApplication
public class Shop {

    private static final Serde<String> TEXT = Serdes.String();

    public static void main(String[] arguments) {
        SpringApplication.run(Shop.class, arguments);
    }

    @Bean
    @ConfigurationProperties("kafka")
    Properties kafka() {
        return new Properties();
    }

    /** Spring Boot closes it when the process is asked to end. */
    @Bean(initMethod = "start", destroyMethod = "close")
    KafkaStreams streams(Properties kafka) {
        return new KafkaStreams(topology(), kafka);
    }

    static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("orders", Consumed.with(TEXT, TEXT))
                .groupByKey(Grouped.with(TEXT, TEXT))
                .aggregate(() -> "0 orders, 0 EUR, ", (customer, order, sums) -> added(sums, order), store("sums"))
                .toStream()
                .to("customers", Produced.with(TEXT, TEXT));
        return builder.build();
    }

    private static String added(String sums, String order) {
        String[] words = sums.split(" ", 5);
        long orders = Long.parseLong(words[0]) + 1;
        long euros = Long.parseLong(words[2]) + Long.parseLong(order.substring(0, order.indexOf(' ')));
        return orders + " orders, " + euros + " EUR, " + order;
    }

    private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> store(String name) {
        return Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(name)
                .withKeySerde(TEXT)
                .withValueSerde(TEXT)
                .withCachingDisabled();
    }
}
