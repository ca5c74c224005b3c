"""The tools in a body of OpenAI's Responses API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.server.errors import unsupported
from app.server.fields import Fields, as_json
from app.server.shared_fields import function_tool


@dataclass(frozen=True, slots=True)
class ResponseTools:
    """The functions that the model may call.

    A namespace is a list of functions. The model gets these functions one by one.
    """

    definitions: str  # as in engine.types.Request.tools
    # Names that the model gets, by namespace ("": none) and name of the function
    names: Mapping[tuple[str, str], str]
    ignored: tuple[str, ...]  # tools that only OpenAI's servers run, for the ignored fields

    def model_name(self, namespace: str, name: str) -> str:
        """Return the name that the model gets for a function."""
        return self.names.get((namespace, name), name)

    @property
    def client_names(self) -> dict[str, tuple[str, str]]:
        """Namespaces and names of the functions, by the names that the model gets."""
        # The first of two functions with the same name is called.
        return {name: pair for pair, name in reversed(list(self.names.items()))}


def read_tools(fields: Fields) -> ResponseTools:
    """Read the field `tools`.

    Raises:
        ServerError: a value is wrong.
    """
    functions: list[tuple[str, Fields]] = []
    ignored: list[str] = []
    for tool in fields.sections("tools"):
        match kind := tool.text("type"):
            case "function":
                functions.append(("", tool))
            case "namespace":
                namespace = tool.text("name")
                functions += [(namespace, function) for function in _functions(tool)]
            case "":
                raise unsupported(tool.path_of("type"), kind)
            case _:
                ignored.append(f"tools.{kind}")
    uses = Counter(function.text("name") for _, function in functions)
    names: dict[tuple[str, str], str] = {}
    definitions: list[dict[str, object]] = []
    for namespace, function in functions:
        name = own_name = function.text("name")
        if namespace and uses[own_name] > 1:
            name = f"{namespace}__{own_name}"
        names[namespace, own_name] = name
        function.section("parameters")  # it must be an object
        parameters = function.raw("parameters")
        definitions.append(function_tool(name, function.text("description"), parameters))
    text = as_json(definitions) if definitions else ""
    return ResponseTools(text, names, tuple(dict.fromkeys(ignored)))


def _functions(namespace: Fields) -> Iterator[Fields]:
    for tool in namespace.sections("tools"):
        kind, path = tool.text("type"), tool.path_of("type")
        if kind != "function":
            raise unsupported(path, kind)
        yield tool
