package onceproof.streams;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.streams.KafkaStreams;

/** Version and commit of the Kafka jars that were actually loaded. */
final class Versions {

    private static final Pattern JAR = Pattern.compile("([a-z-]+)-([0-9][^/]*)\\.jar$");

    private Versions() {}

    static Map<String, Object> loaded() {
        Map<String, Object> versions = new LinkedHashMap<>();
        put(versions, "streams", KafkaStreams.class, "/kafka/kafka-streams-version.properties");
        put(versions, "clients", Consumer.class, "/kafka/kafka-version.properties");
        return versions;
    }

    /**
     * From the properties in the jar, null where it has none: kafka-streams of the 3.3 line was published without
     * them, so its version is taken from the name of the jar that the class came from, and its commit is not known.
     */
    private static void put(Map<String, Object> versions, String name, Class<?> witness, String resource) {
        Properties found = new Properties();
        try (InputStream in = witness.getResourceAsStream(resource)) {
            if (in != null) {
                found.load(in);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        String jar = witness.getProtectionDomain().getCodeSource().getLocation().getPath();
        Matcher named = JAR.matcher(jar);
        versions.put(name + "_version", found.getProperty("version", named.find() ? named.group(2) : null));
        versions.put(name + "_commit", found.getProperty("commitId"));
        versions.put(name + "_jar", jar.substring(jar.lastIndexOf('/') + 1));
    }
}
