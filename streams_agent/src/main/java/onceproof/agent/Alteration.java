package onceproof.agent;

import java.util.List;
import java.util.stream.Collectors;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.DynamicType;
import net.bytebuddy.matcher.ElementMatcher;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;

/** What is altered in one class of Kafka: the methods of one name, into which an {@link Advice} is woven. */
final class Alteration {

    private static final String STREAMS = "org.apache.kafka.streams.";

    final String type;
    private final String method;
    private final int parameters;
    private final Class<?> advice;

    private Alteration(String type, String method, int parameters, Class<?> advice) {
        this.type = type;
        this.method = method;
        this.parameters = parameters;
        this.advice = advice;
    }

    /** All methods of this name; {@code <init>} means the constructors. */
    static Alteration of(String type, String method, Class<?> advice) {
        return new Alteration(type.replaceFirst("^~", STREAMS), method, -1, advice);
    }

    /** The methods of this name that have this many parameters. */
    static Alteration of(String type, String method, int parameters, Class<?> advice) {
        return new Alteration(type.replaceFirst("^~", STREAMS), method, parameters, advice);
    }

    private ElementMatcher.Junction<MethodDescription> methods() {
        ElementMatcher.Junction<MethodDescription> named =
                method.equals("<init>") ? ElementMatchers.isConstructor() : ElementMatchers.named(method);
        ElementMatcher.Junction<MethodDescription> wanted = named.and(ElementMatchers.not(ElementMatchers.isBridge()));
        return parameters < 0 ? wanted : wanted.and(ElementMatchers.takesArguments(parameters));
    }

    /** The methods that it alters on this release, as {@code Class.method(Types)}; empty if there are none. */
    List<String> altered(TypePool classes) {
        TypePool.Resolution found = classes.describe(type);
        if (!found.isResolved()) {
            return List.of();
        }
        return altered(found.resolve());
    }

    /** What it looks for, as {@code Class.method}. */
    String wanted() {
        return type.substring(type.lastIndexOf('.') + 1) + "." + method;
    }

    List<String> altered(TypeDescription description) {
        return description.getDeclaredMethods().filter(methods()).stream()
                .map(m -> description.getSimpleName() + "." + (m.isConstructor() ? "<init>" : m.getName()) + "("
                        + m.getParameters().asTypeList().asErasures().stream()
                                .map(TypeDescription::getSimpleName).collect(Collectors.joining(", ")) + ")")
                .collect(Collectors.toList());
    }

    DynamicType.Builder<?> weave(DynamicType.Builder<?> builder) {
        return builder.visit(Advice.to(advice).on(methods()));
    }
}
