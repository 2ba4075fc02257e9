package onceproof.agent;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;

/**
 * {@code -javaagent:onceproof-streams-agent.jar=[plant=NAME][,report=FILE][,native][,halt]}: plants the bug into the
 * classes of Kafka on the class path, before any of them is used. With {@code report}, writes how often it fired to that
 * file when the JVM ends. With {@code native}, counts the native objects of RocksDB ({@link NativeObjects}). With
 * {@code halt}, ends the JVM while it deletes a segment ({@link Halting}).
 */
public final class Agent {

    private Agent() {}

    public static void premain(String arguments, Instrumentation jvm) throws ReflectiveOperationException {
        Map<String, String> asked = parse(arguments);
        ClassLoader loader = ClassLoader.getSystemClassLoader();
        TypePool classes = TypePool.Default.of(ClassFileLocator.ForClassLoader.of(loader));
        List<Alteration> form = new ArrayList<>();
        if (asked.containsKey("plant")) {
            form.addAll(planted(Plants.named(asked.get("plant")), classes));
        }
        if (asked.containsKey("native")) {
            form.addAll(NativeObjects.COUNTED);
        }
        if (asked.containsKey("halt")) {
            form.add(there(Halting.ALTERED, classes));
        }
        AgentBuilder agent = new AgentBuilder.Default().disableClassFormatChanges().with(new Loud());
        for (Alteration alteration : form) {
            agent = agent.type(ElementMatchers.named(alteration.type))
                    .transform((builder, type, its, module, domain) -> alteration.weave(builder));
        }
        agent.installOn(jvm);
        for (Alteration alteration : form) { // loaded now: what cannot be altered must end the JVM, not a thread
            Class.forName(alteration.type, false, loader);
        }
        if (asked.containsKey("report")) {
            report(Path.of(asked.get("report")));
        }
    }

    private static List<Alteration> planted(Plant plant, TypePool classes) {
        List<Alteration> form = plant.form(classes);
        if (form.isEmpty()) {
            throw new IllegalStateException("This release of Kafka Streams has not the methods of " + plant.name + ".");
        }
        Fired.planted(plant.name, form.stream()
                .flatMap(alteration -> alteration.altered(classes).stream()).collect(Collectors.toList()));
        return form;
    }

    private static Alteration there(Alteration alteration, TypePool classes) {
        if (alteration.altered(classes).isEmpty()) {
            throw new IllegalStateException("This release of Kafka has not the method " + alteration.wanted() + ".");
        }
        return alteration;
    }

    private static void report(Path file) {
        Fired.listen(fields -> {
            try {
                Files.writeString(file, fields.get("fired").toString());
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(Fired::tell, "plant-report"));
    }

    private static Map<String, String> parse(String arguments) {
        Map<String, String> asked = new LinkedHashMap<>();
        for (String argument : String.valueOf(arguments).split(",")) {
            String[] parts = argument.split("=", 2);
            asked.put(parts[0], parts.length == 2 ? parts[1] : "");
        }
        return asked;
    }

    /** What goes wrong while a class is altered must not be swallowed. */
    private static final class Loud extends AgentBuilder.Listener.Adapter {
        @Override
        public void onError(
                String type, ClassLoader loader, net.bytebuddy.utility.JavaModule module, boolean loaded, Throwable e) {
            System.err.println(type + " could not be altered: " + e);
            e.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }
}
