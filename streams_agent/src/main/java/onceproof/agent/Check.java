package onceproof.agent;

import java.io.File;
import java.io.IOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.dynamic.DynamicType;
import net.bytebuddy.pool.TypePool;

/**
 * Plants each bug into the release on the class path, and has the JVM verify the altered classes.
 *
 * <p>Prints a line for each plant (or only the one that is named): its name, then what it altered, separated by tabs;
 * or, if the release does not have all of its methods, those that it lacks, each behind an exclamation mark. Exit code
 * 1 if altered classes do not load.
 */
public final class Check {

    private static final String LACKING = "!";

    private Check() {}

    public static void main(String[] names) throws IOException {
        ClassFileLocator files = ClassFileLocator.ForClassLoader.of(Check.class.getClassLoader());
        TypePool classes = TypePool.Default.of(files);
        List<Plant> wanted = new ArrayList<>(Plants.ALL);
        if (names.length > 0) {
            wanted = List.of(Plants.named(names[0]));
        }
        boolean broken = false;
        for (Plant plant : wanted) {
            List<String> line = new ArrayList<>(List.of(plant.name));
            List<Alteration> form = plant.form(classes);
            form.forEach(alteration -> line.addAll(alteration.altered(classes)));
            if (form.isEmpty()) {
                plant.lacking(classes).forEach(method -> line.add(LACKING + method));
            }
            System.out.println(String.join("\t", line));
            try (Altered loader = new Altered(form, classes, files)) {
                for (Alteration alteration : form) {
                    Class.forName(alteration.type, true, loader); // links it, which verifies its bytecode
                }
            } catch (Throwable e) {
                broken = true;
                System.err.println(plant.name + " breaks the bytecode: " + e);
            }
        }
        System.exit(broken ? 1 : 0);
    }

    /** Loads everything again, altered classes in place of Kafka's own. */
    private static final class Altered extends URLClassLoader {

        private final Map<String, byte[]> altered = new TreeMap<>();

        Altered(List<Alteration> form, TypePool classes, ClassFileLocator files) {
            super(classPath(), ClassLoader.getPlatformClassLoader());
            Map<String, DynamicType.Builder<?>> woven = new TreeMap<>();
            for (Alteration alteration : form) {
                DynamicType.Builder<?> builder = woven.getOrDefault(alteration.type,
                        new ByteBuddy().redefine(classes.describe(alteration.type).resolve(), files));
                woven.put(alteration.type, alteration.weave(builder));
            }
            woven.forEach((type, builder) -> altered.put(type, builder.make().getBytes()));
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            byte[] bytes = altered.get(name);
            return bytes == null ? super.findClass(name) : defineClass(name, bytes, 0, bytes.length);
        }

        private static URL[] classPath() {
            List<URL> urls = new ArrayList<>();
            for (String jar : System.getProperty("java.class.path").split(File.pathSeparator)) {
                try {
                    urls.add(new File(jar).toURI().toURL());
                } catch (MalformedURLException e) {
                    throw new IllegalArgumentException(jar, e);
                }
            }
            return urls.toArray(URL[]::new);
        }
    }
}
