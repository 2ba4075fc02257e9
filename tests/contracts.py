"""A contract of `.importlinter`: what some modules may import; the contracts next to it say what they may not."""

import sys
from typing import cast

from grimp import ImportGraph
from importlinter.application import output
from importlinter.domain import fields
from importlinter.domain.contract import Contract, ContractCheck
from importlinter.domain.imports import Module


class OnlyContract(Contract):
    """Packages import the standard library, themselves, and what is allowed; packages of others only if `third_party`."""

    type_name = "only"
    packages = fields.SetField(subfield=fields.ModuleField())
    allowed = fields.SetField(subfield=fields.ModuleField(), required=False)
    third_party = fields.BooleanField(required=False, default=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Find the direct imports of anything else."""
        packages = {module.name for module in cast("set[Module]", self.packages)}
        allowed = packages | {module.name for module in cast("set[Module]", self.allowed or set())}
        own_roots = {root for root in graph.modules if "." not in root and not graph.is_module_squashed(root)}
        foreign = []
        for importer in sorted(graph.modules):
            for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                root = imported.partition(".")[0]
                fits = _within(imported, allowed) or root in sys.stdlib_module_names
                if _within(importer, packages) and not fits and not (self.third_party and root not in own_roots):
                    foreign.append(f"{importer} imports {imported}")
        return ContractCheck(kept=not foreign, metadata={"foreign": foreign})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Name the imports."""
        for line in check.metadata["foreign"]:
            output.print_error(line)


def _within(name: str, packages: set[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)
