package onceproof.resolver;

import eu.maveniverse.maven.mima.context.Context;
import eu.maveniverse.maven.mima.context.ContextOverrides;
import eu.maveniverse.maven.mima.context.Runtimes;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.maven.model.Model;
import org.apache.maven.model.building.DefaultModelBuilderFactory;
import org.apache.maven.model.building.DefaultModelBuildingRequest;
import org.apache.maven.model.building.ModelBuildingException;
import org.apache.maven.model.building.ModelBuildingRequest;
import org.eclipse.aether.DefaultRepositorySystemSession;
import org.eclipse.aether.RepositoryException;
import org.eclipse.aether.artifact.Artifact;
import org.eclipse.aether.artifact.ArtifactTypeRegistry;
import org.eclipse.aether.artifact.DefaultArtifact;
import org.eclipse.aether.collection.CollectRequest;
import org.eclipse.aether.graph.Dependency;
import org.eclipse.aether.graph.DependencyNode;
import org.eclipse.aether.graph.Exclusion;
import org.eclipse.aether.resolution.DependencyRequest;
import org.eclipse.aether.util.artifact.JavaScopes;
import org.eclipse.aether.util.filter.DependencyFilterUtils;
import org.eclipse.aether.util.graph.visitor.PreorderNodeListGenerator;
import org.eclipse.aether.util.repository.SimpleArtifactDescriptorPolicy;

/**
 * Does what Onceproof asks of Maven, where there is none: it resolves the run-time dependencies of a pom.
 *
 * <p>The arguments are those of Maven: {@code -f POM}, then a goal of the dependency plugin. {@code build-classpath}
 * writes the class path into the file {@code -Dmdep.outputFile}, {@code copy-dependencies} copies the jars into the
 * folder {@code -DoutputDirectory}. {@code -Dmaven.repo.local} names another local repository. The mirrors, proxies and
 * credentials in {@code settings.xml} are honoured, and what is in the local repository is used. What does not match its
 * checksum is refused.
 *
 * <p>Exit code 1: it could not; a line with {@code [ERROR]} says why.
 */
public final class Resolve {

    private Resolve() {}

    public static void main(String[] arguments) {
        try {
            run(List.of(arguments));
        } catch (RepositoryException | ModelBuildingException | IOException | RuntimeException error) {
            System.out.println("[ERROR] " + reason(error));
            System.exit(1);
        }
    }

    /** What it says, and what its causes say that it does not say. */
    private static String reason(Throwable error) {
        StringBuilder said = new StringBuilder();
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            String message = cause.getMessage() == null ? cause.toString() : cause.getMessage();
            if (said.indexOf(message) < 0) {
                said.append(said.length() == 0 ? "" : ": ").append(message.replaceAll("\\R", " "));
            }
        }
        return said.toString();
    }

    private static void run(List<String> arguments) throws RepositoryException, ModelBuildingException, IOException {
        Map<String, String> options = new HashMap<>();
        Path pom = null;
        String goal = "";
        for (int at = 0; at < arguments.size(); at++) {
            String argument = arguments.get(at);
            if (argument.equals("-f")) {
                pom = Path.of(arguments.get(++at));
            } else if (argument.startsWith("-D")) {
                String[] parts = argument.substring(2).split("=", 2);
                options.put(parts[0], parts[1]);
            } else {
                goal = argument.substring(argument.lastIndexOf(':') + 1);
            }
        }
        if (pom == null) {
            throw new IllegalArgumentException("-f POM is missing");
        }
        List<Path> jars = resolved(pom, options.get("maven.repo.local"));
        if (goal.equals("build-classpath")) {
            String classPath = jars.stream().map(Path::toString).collect(Collectors.joining(File.pathSeparator));
            Files.writeString(Path.of(options.get("mdep.outputFile")), classPath);
        } else if (goal.equals("copy-dependencies")) {
            Path folder = Files.createDirectories(Path.of(options.get("outputDirectory")));
            for (Path jar : jars) {
                Files.copy(jar, folder.resolve(jar.getFileName()), StandardCopyOption.REPLACE_EXISTING);
            }
        } else {
            throw new IllegalArgumentException("the goal " + goal + " is not known here, Maven may know it");
        }
    }

    /** The jars of the pom's run-time dependencies, in Maven's order. */
    private static List<Path> resolved(Path pom, String repository) throws RepositoryException, ModelBuildingException {
        ContextOverrides.Builder wanted = ContextOverrides.create()
                .withUserSettings(true)
                .snapshotUpdatePolicy(ContextOverrides.SnapshotUpdatePolicy.ALWAYS)
                .checksumPolicy(ContextOverrides.ChecksumPolicy.FAIL);
        if (repository != null) {
            wanted.withLocalRepositoryOverride(Path.of(repository));
        }
        try (Context context = Runtimes.INSTANCE.getRuntime().create(wanted.build())) {
            DefaultRepositorySystemSession session =
                    new DefaultRepositorySystemSession(context.repositorySystemSession());
            // As Maven does: what is missing is reported of the jar.
            session.setArtifactDescriptorPolicy(new SimpleArtifactDescriptorPolicy(true, true));
            CollectRequest collect = new CollectRequest();
            collect.setRepositories(context.remoteRepositories());
            collect.setRootArtifact(new DefaultArtifact("onceproof:resolved:pom:1"));
            for (org.apache.maven.model.Dependency one : model(pom).getDependencies()) {
                collect.addDependency(dependency(one, session.getArtifactTypeRegistry()));
            }
            DependencyRequest request =
                    new DependencyRequest(collect, DependencyFilterUtils.classpathFilter(JavaScopes.RUNTIME));
            DependencyNode root = context.repositorySystem().resolveDependencies(session, request).getRoot();
            PreorderNodeListGenerator nodes = new PreorderNodeListGenerator();
            root.accept(nodes);
            Set<Path> jars = new LinkedHashSet<>();
            for (File file : nodes.getFiles()) {
                jars.add(file.toPath().toAbsolutePath());
            }
            return new ArrayList<>(jars);
        }
    }

    private static Model model(Path pom) throws ModelBuildingException {
        DefaultModelBuildingRequest request = new DefaultModelBuildingRequest();
        request.setPomFile(pom.toFile());
        request.setProcessPlugins(false);
        request.setSystemProperties(System.getProperties());
        request.setValidationLevel(ModelBuildingRequest.VALIDATION_LEVEL_MINIMAL);
        return new DefaultModelBuilderFactory().newInstance().build(request).getEffectiveModel();
    }

    private static Dependency dependency(org.apache.maven.model.Dependency one, ArtifactTypeRegistry types) {
        Artifact artifact = new DefaultArtifact(
                one.getGroupId(),
                one.getArtifactId(),
                one.getClassifier(),
                null,
                one.getVersion(),
                types.get(one.getType()));
        List<Exclusion> exclusions = one.getExclusions().stream()
                .map(without -> new Exclusion(without.getGroupId(), without.getArtifactId(), "*", "*"))
                .collect(Collectors.toList());
        String scope = one.getScope() == null ? JavaScopes.COMPILE : one.getScope();
        return new Dependency(artifact, scope, Boolean.valueOf(one.isOptional()), exclusions);
    }
}
