"""No test depends on another one: random data belong to a test, not to a module or a process."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
# What sets or reads the state of a process-wide generator, which tests of that state may do.
ABOUT_STATE = {"seed", "get_state", "set_state", "getstate", "setstate"}
UNSEEDED = {"default_rng", "RandomState", "SeedSequence", "PCG64", "Random"}
KINDS = {"Generator", "MT19937", "Philox", "SFC64", "PCG64DXSM", *UNSEEDED}
TORCH = {"bernoulli", "multinomial", "normal", "poisson", "seed", "manual_seed", "Generator"}
IN_PLACE = {"bernoulli_", "exponential_", "normal_", "random_", "uniform_"}


def imported(nodes: list[ast.AST]) -> dict[str, str]:
    """Return the full name behind each name that a module imports."""
    names = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for item in node.names:
                top = item.name.partition(".")[0]
                names[item.asname or top] = item.name if item.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {item.asname or item.name: f"{node.module}.{item.name}" for item in node.names}
    return names


def called(call: ast.Call, names: dict[str, str]) -> str:
    """Return the full name of a called function as far as imports tell it, or ""."""
    parts, function = [], call.func
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    if not isinstance(function, ast.Name) or function.id not in names:
        return ""
    return ".".join([names[function.id], *reversed(parts)])


def is_random(call: ast.Call, name: str) -> bool:
    """Tell whether a call makes or seeds a generator, or draws from a process-wide one."""
    library, _, function = name.rpartition(".")
    if library == "torch":
        return function in TORCH or function.startswith("rand")
    drawn_in_place = isinstance(call.func, ast.Attribute) and call.func.attr in IN_PLACE
    return library in {"numpy.random", "random", "torch.random"} or drawn_in_place


def run_at_import(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Walk over what an import runs: bodies of functions are left out, their defaults are not."""
    todo: list[ast.AST] = [*body]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            todo += [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            todo += getattr(node, "decorator_list", [])
        else:
            yield node
            todo += ast.iter_child_nodes(node)


def complaints(source: str) -> list[str]:
    """Return what is wrong with a module of tests, each with its line."""
    if "rand" not in source and "torch" not in source:
        return []
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    names, found = imported(nodes), {}
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        library, _, function = called(node, names).rpartition(".")
        if library not in {"numpy.random", "random"} or function in ABOUT_STATE:
            continue
        where = f"line {node.lineno}: {library}.{function}"
        if function in UNSEEDED and not (node.args or node.keywords):
            found[node] = f"{where} has no seed"
        elif function not in KINDS:
            found[node] = f"{where} draws from the process-wide generator; use the fixture rng"
    for node in run_at_import(tree.body):
        if isinstance(node, ast.Call) and is_random(node, called(node, names)):
            found[node] = (
                f"line {node.lineno}: {ast.unparse(node.func)} at module level; use the fixture "
                "rng, or a function with a generator of its own"
            )
    return [found[node] for node in sorted(found, key=lambda node: node.lineno)]


def test_random_data_belong_to_a_test() -> None:
    found = [
        f"{path.relative_to(TESTS)}, {complaint}"
        for path in sorted(TESTS.rglob("*.py"))
        for complaint in complaints(path.read_text(encoding="utf-8"))
    ]
    if found:
        pytest.fail("\n".join(found))


IMPORTS = "import random\nimport numpy as np\nimport torch\nfrom numpy.random import default_rng\n"


@pytest.mark.parametrize(
    "source",
    [
        "RNG = np.random.default_rng(0)",
        "RNG: np.random.Generator = default_rng(0)",
        "X, Y = default_rng(0).normal(size=(2, 9))",
        "RNG = np.random.Generator(np.random.PCG64(0))",
        "RNG = np.random.RandomState(0)",
        "np.random.seed(0)",
        "X = np.random.normal(size=9)",
        "CHANCE = random.Random(0)",
        "random.seed(0)",
        "X = torch.randn(3)",
        "X = torch.rand(3, generator=torch.Generator().manual_seed(0))",
        "ORDER = torch.randperm(9)",
        "torch.manual_seed(0)",
        "X = torch.empty(3).normal_()",
        "class Data:\n    x = torch.rand(3)",
        "if True:\n    X = [np.random.rand(3) for _ in range(2)]",
        "def test(x=default_rng(0).normal()): ...",
        "def test(*, x=random.random()): ...",
        "@pytest.mark.parametrize('x', default_rng(0).normal(size=3))\ndef test(x): ...",
        "DRAW = lambda x=torch.rand(2): x",
        "def test():\n    x = np.random.normal()",
        "def test():\n    x = random.choice([1, 2])",
        "def test():\n    rng = default_rng()",
        "def test():\n    rng = np.random.default_rng()",
        "def test():\n    chance = random.Random()",
    ],
)
def test_what_depends_on_chance_or_order_is_refused(source: str) -> None:
    (complaint, *_) = complaints(IMPORTS + source)
    assert complaint.startswith("line ")
    if "\n" not in source:
        assert complaint.startswith(f"line {IMPORTS.count(chr(10)) + 1}: ")


@pytest.mark.parametrize(
    "source",
    [
        "def test(rng): return rng.normal(size=3)",
        "def table(seed=0):\n    return default_rng(seed).normal(size=3)\nX = table()",
        "def test():\n    return np.random.default_rng(0), random.Random(0)",
        "def test():\n    np.random.seed(3)\n    return np.random.get_state()",
        "def test():\n    torch.manual_seed(0)\n    return torch.rand(3)",
        "DRAW = lambda: torch.rand(3)",
        "X = np.arange(3)",
        "from collections.abc import Generator\nX = Generator()",
    ],
)
def test_data_of_a_tests_own_are_allowed(source: str) -> None:
    assert complaints(IMPORTS + source) == []
