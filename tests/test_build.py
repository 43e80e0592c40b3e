"""BUILD lists every Python file once, with the imports of our own that it has."""

import ast
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parent.parent


def targets():
    tree = ast.parse((ROOT / "BUILD").read_text())  # Starlark is a subset of Python
    for node in tree.body:
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and call.func.id.startswith("py_"):
            yield {k.arg: ast.literal_eval(k.value) for k in call.keywords}


def python_files():
    command = ["git", "ls-files", "-co", "--exclude-standard", "*.py"]
    listed = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    return sorted(f for f in set(listed.stdout.split()) if (ROOT / f).exists())


def imported_files(path):
    """Files of ours that a file imports; tests import one another by their stem."""
    modules = {}
    for file in python_files():
        modules[file[:-3].replace("/", ".").removesuffix(".__init__")] = file
        if file.startswith("tests/"):
            modules.setdefault(pathlib.Path(file).stem, file)
    found = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            names.append(node.module)
        found |= {modules[name] for name in names if name in modules}
    return found - {path}


def test_every_python_file_is_in_exactly_one_target():
    sources = sorted(source for target in targets() for source in target["srcs"])
    assert sources == python_files()


@pytest.mark.parametrize("target", targets(), ids=lambda target: target["name"])
def test_declared_dependencies_are_the_imports(target):
    (source,) = target["srcs"]
    declared = {name.removeprefix(":") + ".py" for name in target.get("deps", [])}
    assert declared == imported_files(source)


KNOWS = {
    "models": {"models"},
    "losses": set(),
    "streaming_loss": {"losses"},
    "streaming_nt_xent": {"losses", "streaming_loss"},
    "data_uris": set(),
    "memory": set(),
    "replicas": set(),
    "slices": set(),
    "files": set(),
    "optimizers": {"optimizers"},
    "data": {"data"},
    "evaluation": {"evaluation", "models", "data", "losses"},
    "training": {
        *("training", "evaluation", "models", "data", "optimizers"),
        *("losses", "streaming_loss", "streaming_nt_xent"),
    },
    "export": {"export", "models", "data", "evaluation"},
}
SHARED = {"__init__", "memory", "files", "data_uris", "replicas", "slices"}


@pytest.mark.parametrize(
    "path", [f for f in python_files() if f.startswith("basic_tf/")]
)
def test_knowledge_points_one_way(path):
    """Models, losses, optimizers and data know nothing of each other; and so on."""
    part = pathlib.Path(path).with_suffix("").parts[1]
    if part == "__init__":
        return
    for file in imported_files(path):
        parts = pathlib.Path(file).with_suffix("").parts
        assert parts[0] == "basic_tf", f"{path} knows {file}"
        known = KNOWS[part] | SHARED
        assert parts[1] in known, f"{part} may not know {file}"
