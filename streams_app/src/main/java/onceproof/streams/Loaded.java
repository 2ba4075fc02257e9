package onceproof.streams;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Properties;
import java.util.function.Supplier;
import org.apache.kafka.streams.Topology;

/**
 * The topology of your own application, from its jars: a class that is a {@code Supplier<Topology>}, or
 * {@code Class#method} of a static method that takes {@code Properties} (Kafka Streams' configuration) or nothing.
 */
final class Loaded {

    private Loaded() {}

    /** Have the application's class build it. What that throws is the application's, and reported as it is. */
    static Topology topology(Settings settings, Properties config) {
        settings.text("application"); // where it comes from
        settings.tables(OwnStore.ASKED); // see there
        String name = settings.text("class");
        int method = name.indexOf('#');
        Class<?> type = load(method < 0 ? name : name.substring(0, method));
        Object made = method < 0 ? supplied(type) : called(type, name.substring(method + 1), config);
        if (!(made instanceof Topology)) {
            throw new IllegalArgumentException(
                    name + " gave " + (made == null ? "null" : "a " + made.getClass().getName()) + ", but must give a Topology.");
        }
        return (Topology) made;
    }

    private static Class<?> load(String name) {
        try {
            return Class.forName(name, true, Thread.currentThread().getContextClassLoader());
        } catch (ClassNotFoundException e) {
            throw new IllegalArgumentException("There is no class " + name + " in the application's jars or sources.");
        }
    }

    private static Object supplied(Class<?> type) {
        if (!Supplier.class.isAssignableFrom(type)) {
            throw new IllegalArgumentException(type.getName()
                    + " is no Supplier<Topology>; write " + type.getName() + "#method to name a static method.");
        }
        try {
            return ((Supplier<?>) type.getDeclaredConstructor().newInstance()).get();
        } catch (NoSuchMethodException | InstantiationException | IllegalAccessException e) {
            throw new IllegalArgumentException(type.getName() + " has no public constructor without arguments.");
        } catch (InvocationTargetException e) {
            throw thrown(e);
        }
    }

    private static Object called(Class<?> type, String name, Properties config) {
        try {
            Method withConfig = method(type, name, Properties.class);
            return withConfig != null ? withConfig.invoke(null, config) : plain(type, name).invoke(null);
        } catch (IllegalAccessException e) {
            throw new IllegalArgumentException(type.getName() + "#" + name + " is not public.");
        } catch (InvocationTargetException e) {
            throw thrown(e);
        }
    }

    private static Method plain(Class<?> type, String name) {
        Method method = method(type, name);
        if (method == null) {
            throw new IllegalArgumentException(
                    type.getName() + " has no public static method " + name + " that takes Properties or nothing.");
        }
        return method;
    }

    private static Method method(Class<?> type, String name, Class<?>... parameters) {
        try {
            Method method = type.getMethod(name, parameters);
            return Modifier.isStatic(method.getModifiers()) ? method : null;
        } catch (NoSuchMethodException e) {
            return null;
        }
    }

    private static RuntimeException thrown(InvocationTargetException e) {
        Throwable cause = e.getCause();
        if (cause instanceof Error) {
            throw (Error) cause;
        }
        return cause instanceof RuntimeException ? (RuntimeException) cause : new IllegalStateException(cause);
    }
}
