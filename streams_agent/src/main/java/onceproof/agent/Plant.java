package onceproof.agent;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import net.bytebuddy.pool.TypePool;

/**
 * A named bug. Where the internals of Kafka have moved, it has several forms: the first one whose methods all exist is
 * planted.
 */
final class Plant {

    final String name;
    private final List<List<Alteration>> forms = new ArrayList<>();

    Plant(String name, Alteration... form) {
        this.name = name;
        or(form);
    }

    Plant or(Alteration... form) {
        forms.add(List.of(form));
        return this;
    }

    /** The form for the release on the class path; empty if none fits. */
    List<Alteration> form(TypePool classes) {
        return forms.stream()
                .filter(form -> form.stream().noneMatch(alteration -> alteration.altered(classes).isEmpty()))
                .findFirst()
                .orElse(List.of());
    }

    /** What the release on the class path lacks of the newest form, as {@code Class.method}; all is there if it fits. */
    List<String> lacking(TypePool classes) {
        return forms.get(forms.size() - 1).stream()
                .filter(alteration -> alteration.altered(classes).isEmpty())
                .map(Alteration::wanted)
                .collect(Collectors.toList());
    }
}
