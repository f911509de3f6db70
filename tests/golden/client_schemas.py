"""Schemas as clients make them: pydantic 2, OpenAI's strict form, what zod writes, and tools of MCP servers."""
import datetime, decimal, enum, json, pathlib, typing, uuid

HERE = pathlib.Path(__file__).parent


def of_pydantic():
    from pydantic import BaseModel, ConfigDict, EmailStr, Field, RootModel, conint, constr  # noqa: F401 EmailStr needs a package of its own

    class Colour(enum.Enum): red, green, blue = "red", "green", "blue"

    class Point(BaseModel):
        x: float
        y: float

    class Address(BaseModel):
        street: str
        city: str
        postal_code: str = Field(pattern=r"^\d{4,5}$")

    class Person(BaseModel):
        name: str = Field(min_length=1, max_length=40)
        age: int = Field(ge=0, le=130)
        address: Address | None = None

    class Tagged(BaseModel):
        tags: list[str] = Field(default_factory=list, max_length=5)
        scores: dict[str, float] = {}

    class Cat(BaseModel):
        kind: typing.Literal["cat"]
        lives: int

    class Dog(BaseModel):
        kind: typing.Literal["dog"]
        breed: str

    class Pet(BaseModel): pet: Cat | Dog = Field(discriminator="kind")

    class Either(BaseModel): value: int | str | None

    class Node(BaseModel):
        text: str
        children: list["Node"] = []

    class Event(BaseModel):
        id: uuid.UUID
        day: datetime.date
        at: datetime.datetime

    class Price(BaseModel):
        amount: decimal.Decimal
        currency: typing.Literal["EUR", "USD"] = "EUR"

    class Closed(BaseModel):
        model_config = ConfigDict(extra="forbid")
        colour: Colour
        points: tuple[Point, Point]

    class Unique(BaseModel): names: set[str]

    class Steps(BaseModel):
        steps: list[str] = Field(min_length=1)
        answer: float = Field(gt=0, lt=1)

    class Multiple(BaseModel): size: int = Field(multiple_of=4)

    class Points(RootModel): root: list[Point]
    return {f"pydantic {model.__name__}": model.model_json_schema() for model in
            (Point, Address, Person, Tagged, Pet, Either, Node, Event, Price, Closed, Unique, Steps, Multiple, Points)}


def strict(**properties): return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def of_openai():
    text, number = {"type": "string"}, {"type": "number"}
    return {f"openai {i}": schema for i, schema in enumerate([
        strict(steps={"type": "array", "items": strict(explanation=text, output=text)}, final_answer=text),
        strict(title=text, authors={"type": "array", "items": text}, abstract={"type": ["string", "null"], "description": "if there is one"}),
        {**strict(type={"type": "string", "enum": ["div", "button"]}, children={"type": "array", "items": {"$ref": "#"}}), "title": "ui"},
        {**strict(value=number, next={"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}), "$defs": {"node": strict(value=number)}},
        strict(item={"anyOf": [strict(name=text, age={"type": "integer"}), strict(number=text, street=text)]}),
        strict(temperature={"type": "number", "minimum": -130, "maximum": 130}, location={"type": "string", "pattern": "^[a-zA-Z ]+$"}),
        strict(categories={"type": "array", "items": {"type": "string", "enum": ["violence", "spam"]}, "minItems": 1, "maxItems": 2}, flagged={"type": "boolean"}),
        strict(when={"type": "string", "format": "date-time"}, to={"type": "string", "format": "email"})])}


def of_zod():
    draft7, text = {"$schema": "http://json-schema.org/draft-07/schema#"}, {"type": "string"}
    return {f"zod {i}": {**schema, **draft7} for i, schema in enumerate([
        strict(id={"type": "string", "format": "uuid"}, count={"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991}),
        strict(url={"type": "string", "format": "uri"}, n={"type": "number", "exclusiveMinimum": 0}),
        strict(pair={"type": "array", "minItems": 2, "maxItems": 2, "items": [{"type": "string"}, {"type": "number"}]}),
        strict(map={"type": "object", "additionalProperties": {"type": "number"}, "propertyNames": {"type": "string"}}),
        {"anyOf": [strict(type={"type": "string", "const": "a"}, a=text), strict(type={"type": "string", "const": "b"}, b={"type": "boolean"})]},
        {"allOf": [{"type": "object", "properties": {"a": text}, "required": ["a"]}, {"type": "object", "properties": {"b": {"type": "number"}}, "required": ["b"]}]},
        {"$ref": "#/definitions/Node", "definitions": {"Node": {"type": "object", "properties": {"name": text, "below": {"type": "array", "items": {"$ref": "#/definitions/Node"}}},
                                                                "required": ["name"], "additionalProperties": False}}}])}


def of_mcp():
    """The tools of scripts/prompts/tools/mcp.jsonl, if it is there."""
    path = HERE / "../../scripts/prompts/tools/mcp.jsonl"
    tools = [json.loads(line)["tool"]["function"] for line in path.open()] if path.exists() else []
    return {f"mcp {tool['name']}": tool["parameters"] for tool in tools}


def client_schemas(): return {**of_pydantic(), **of_openai(), **of_zod(), **of_mcp()}
