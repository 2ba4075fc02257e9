package onceproof.streams;

import java.lang.reflect.InvocationTargetException;
import java.util.List;

/** Classes and methods that Kafka Streams 3.0.0 lacks, against which this is compiled: by reflection. */
final class Newer {

    private Newer() {}

    /** The class; if the release has none, a sentence says that it has no {@code lacking}. */
    static Class<?> type(String name, String lacking) {
        try {
            return Class.forName(name);
        } catch (ClassNotFoundException e) {
            throw new IllegalArgumentException("This Kafka Streams has no " + lacking + ".", e);
        }
    }

    static Object call(Object on, Class<?> type, String method, List<Class<?>> types, Object... arguments) {
        try {
            return type.getMethod(method, types.toArray(Class<?>[]::new)).invoke(on, arguments);
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof RuntimeException) {
                throw (RuntimeException) e.getCause();
            }
            throw new IllegalStateException(e.getCause());
        } catch (NoSuchMethodException | IllegalAccessException e) {
            throw new IllegalStateException(method + " of " + type.getSimpleName() + " cannot be called", e);
        }
    }
}
