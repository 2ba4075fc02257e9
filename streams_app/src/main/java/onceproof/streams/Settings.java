package onceproof.streams;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** A topology's own settings (`app` of the start line). A setting that nothing asked for is reported as a mistake. */
final class Settings {

    private final Map<String, Object> values;
    private final Set<String> known = new HashSet<>();
    private final Map<String, Object> taken = new TreeMap<>();

    Settings(Map<String, Object> values) {
        this.values = values;
    }

    String text(String name) {
        return get(name, String.class, "a text");
    }

    /** A text that need not be set. */
    Optional<String> optional(String name) {
        known.add(name);
        return values.containsKey(name) ? Optional.of(text(name)) : Optional.empty();
    }

    /** One of the choices; the first if it is not set. */
    String oneOf(String name, String... choices) {
        known.add(name);
        String value = values.containsKey(name) ? text(name) : choices[0];
        if (!Set.of(choices).contains(value)) {
            throw new IllegalArgumentException(
                    "Setting " + name + " is \"" + value + "\", but must be one of: " + String.join(", ", choices) + ".");
        }
        taken.put(name, value);
        return value;
    }

    /** The settings that were asked for, as the topology took them: defaults too, tables not. */
    Map<String, Object> taken() {
        return taken;
    }

    /** A whole number from 1 on. */
    int count(String name) {
        int value = get(name, Integer.class, "a whole number");
        if (value < 1) {
            throw new IllegalArgumentException("Setting " + name + " is " + value + ", but must be at least 1.");
        }
        return value;
    }

    /** A whole number from 1 on that need not be set. */
    Optional<Integer> optionalCount(String name) {
        known.add(name);
        return values.containsKey(name) ? Optional.of(count(name)) : Optional.empty();
    }

    boolean flag(String name) {
        return get(name, Boolean.class, "true or false");
    }

    /** Tables, each with settings of its own; none if they are not set. */
    List<Settings> tables(String name) {
        known.add(name);
        List<Settings> tables = new ArrayList<>();
        if (values.containsKey(name)) {
            for (Object table : get(name, List.class, "a list of objects")) {
                Map<String, Object> fields = new TreeMap<>();
                ((Map<?, ?>) table).forEach((key, value) -> fields.put(String.valueOf(key), value));
                tables.add(new Settings(fields));
            }
        }
        return tables;
    }

    void rejectUnknown() {
        Set<String> unknown = new TreeSet<>(values.keySet());
        unknown.removeAll(known);
        if (!unknown.isEmpty()) {
            throw new IllegalArgumentException(
                    "Unknown setting " + String.join(", ", unknown) + "; known are: "
                            + String.join(", ", new TreeSet<>(known)) + ".");
        }
    }

    private <T> T get(String name, Class<T> type, String kind) {
        known.add(name);
        Object value = values.get(name);
        if (!type.isInstance(value)) {
            throw new IllegalArgumentException(
                    value == null
                            ? "Setting " + name + " is missing; it must be " + kind + "."
                            : "Setting " + name + " is " + value + ", but must be " + kind + ".");
        }
        if (!(value instanceof List)) {
            taken.put(name, value);
        }
        return type.cast(value);
    }
}
