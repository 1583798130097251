"""The tools as JSON Schema, in OpenAI's function-calling form, and as an OpenAPI document."""

from collections.abc import Mapping
from typing import Any, get_args

from toolkit.lab.backoffice.parameters import CODES, Parameter
from toolkit.lab.backoffice.records import CATEGORIES, PRIORITIES, Status
from toolkit.lab.backoffice.tools import TOOLS, Tool

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(tool: Tool) -> Schema:
    """Return the JSON Schema (2020-12) of a tool's arguments."""
    return {
        "type": "object",
        "properties": {parameter.name: _parameter(parameter) for parameter in tool.parameters},
        "required": [parameter.name for parameter in tool.parameters if parameter.required],
        "additionalProperties": False,
    }


def json_schemas() -> dict[str, Schema]:
    """Return, by tool, the schema of its arguments as a document that stands alone."""
    return {
        tool.name: {"$schema": DIALECT, "title": tool.name, "description": tool.about, **json_schema(tool)}
        for tool in TOOLS.values()
    }


def openai_tools() -> list[Schema]:
    """Return the tools in OpenAI's function-calling form."""
    functions = (
        {"name": tool.name, "description": tool.about, "parameters": json_schema(tool)}
        for tool in TOOLS.values()
    )
    return [{"type": "function", "function": function} for function in functions]


def answer_schema(tool: Tool) -> Schema:
    """Return the JSON Schema of what a tool answers; a fault can lose any field of a record."""
    if tool.name == "wait":
        return _object({"waited": _whole("Seconds that were waited.")})
    if tool.name == "finish":
        return _object({"finished": {"const": True}})
    revision = _whole("How many writes had been applied to the state that this answer shows.")
    if tool.shows is None:
        return _object({"revision": revision})
    record = _object({name: _FIELDS[name] for name in tool.fields}, required=())
    if tool.kind == "read":
        return _object({"revision": revision, tool.shows: record})
    return _object(
        {
            "revision": revision,
            tool.shows: _list(record),
            "has_more": {"type": "boolean", "description": "Whether another page follows."},
            "next_offset": _whole("Offset at which the next page starts."),
        }
    )


def error_schema() -> Schema:
    """Return the JSON Schema of a tool error."""
    meanings = "\n".join(f"{code}: {meaning}" for code, meaning in CODES.items())
    error = {
        "code": {"type": "string", "enum": list(CODES), "description": meanings},
        "message": _text("The error in words."),
        "retry_after": _whole("Seconds to wait (rate_limited)."),
        "parameter": _text("The argument that was refused (invalid_arguments)."),
    }
    return _object({"error": _object(error, required=("code", "message"))})


def openapi_document(version: str) -> Schema:
    """Return an OpenAPI 3.1 document with one POST operation a tool, as of a version of the package."""
    schemas = {"Error": error_schema()}
    for tool in TOOLS.values():
        schemas[f"{tool.name}_arguments"] = json_schema(tool)
        schemas[f"{tool.name}_answer"] = answer_schema(tool)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Back office",
            "version": version,
            "description": "The tools of one episode. A schema states what is asked for; a number written as "
            "text is read as well.",
        },
        "jsonSchemaDialect": DIALECT,
        "paths": {f"/{tool.name}": {"post": _operation(tool)} for tool in TOOLS.values()},
        "components": {"schemas": schemas},
    }


def _operation(tool: Tool) -> Schema:
    return {
        "operationId": tool.name,
        "summary": tool.about,
        "requestBody": {
            "required": any(parameter.required for parameter in tool.parameters),
            "content": _content(f"{tool.name}_arguments"),
        },
        "responses": {
            "200": {"description": "The tool's answer.", "content": _content(f"{tool.name}_answer")},
            "default": {"description": "A tool error.", "content": _content("Error")},
        },
    }


def _content(name: str) -> Schema:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}


def _parameter(parameter: Parameter) -> Schema:
    schema: Schema = {"type": parameter.type, "description": parameter.about}
    if parameter.type == "integer":
        schema |= {"minimum": parameter.minimum, "maximum": parameter.maximum}
    elif parameter.choices:
        schema |= {"enum": list(parameter.choices)}
    else:
        schema |= {"minLength": 1} if parameter.required else {}
        schema |= {"maxLength": parameter.max_length}
    return schema if parameter.required else schema | {"default": parameter.default}


def _object(properties: Mapping[str, Schema], required: tuple[str, ...] | None = None) -> Schema:
    """Return an object's schema, every property required unless some are named."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


def _text(about: str) -> Schema:
    return {"type": "string", "description": about}


def _text_or_null(about: str) -> Schema:
    return {"type": ["string", "null"], "description": about}


def _whole(about: str) -> Schema:
    return {"type": "integer", "minimum": 0, "description": about}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_PRODUCT_ID = _text("Product.")

# What each field of `Tool.fields` holds; a name means the same in every record that has it.
_FIELDS: Mapping[str, Schema] = {
    "customer_id": _text("Customer."),
    "name": _text("Name."),
    "email": _text("Email address."),
    "city": _text("City."),
    "tickets": _list(
        _object(
            {
                "ticket_id": _text("Ticket."),
                "order_id": _text_or_null("Order it is about; null for none."),
                "category": {"type": "string", "enum": list(CATEGORIES)},
                "priority": {"type": "string", "enum": list(PRIORITIES)},
            }
        )
    ),
    "order_id": _text("Order."),
    "placed_on": {"type": "string", "format": "date", "description": "Day the order was placed."},
    "status": {"type": "string", "enum": list(get_args(Status))},
    "products": _list(_text("Name of a product on the order.")),
    "lines": _list(
        _object(
            {
                "product_id": _PRODUCT_ID,
                "product": _text("Name of the product."),
                "quantity": _whole("How many were ordered."),
                "unit_price_cents": _whole("Price of one, in cents."),
                "reserved": _whole("How many are reserved."),
            }
        )
    ),
    "shipping_address": _object(
        {
            "street": _text("Street and number."),
            "city": _text("City."),
            "postal_code": _text("Postal code."),
            "country": _text("Country."),
        }
    ),
    "refundable_cents": _whole("What can still be refunded, in cents."),
    "refunded_cents": _whole("What was refunded, in cents."),
    "pick_list": _text_or_null("Current pick list; null where nothing is reserved."),
    "product_id": _PRODUCT_ID,
    "stock": _list(
        _object(
            {
                "warehouse": _text("Warehouse."),
                "on_hand": _whole("How many lie there."),
                "available": _whole("How many of them are not reserved."),
            }
        )
    ),
}
