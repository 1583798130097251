"""How a small model's conversations are written: its chat template, and the template that reads its answers.

It writes a conversation without JSON's punctuation, which would be most of the tokens, and without the names
of fields that their values tell: what is copied is found by the few tokens before it, and these must not be
the same in every record. For the same reason

- each line of a task after the first has a mark, at its start and behind its commonest words: two lines say
  "the order placed on", and only the mark tells whose date comes next;
- each order of a list has a mark behind its fields;
- of listed customers there are their numbers and cities alone: those of one name differ in nothing else that
  a task says.

System messages and the list of tools are left out: the model has learned its tools and reads no others.
"""

from typing import Any

from toolkit.lab.policies.language_model.conversation import as_text

USER, ASSISTANT, TOOL, CALL, ARGUMENT, IS, END, PAD = SPECIAL = (
    "<user>",
    "<assistant>",
    "<tool>",
    "<call>",
    "<arg>",
    "<is>",
    "<end>",
    "<pad>",
)
LINE_MARKS = "#%^~"
ORDER_MARKS = "$&*+=|!`"
"""One for each, in turns."""
MARKED = (
    *("the", "order", "with", "placed", "on", "of", "for", "from"),
    *("in", "at", "and", "then", "it", "to", "is", "under"),
)
"""Words that the mark of their line follows."""

_TOLD = (
    "order_id",
    "customer_id",
    "product_id",
    "placed_on",
    "status",
    "products",
    "product",
    "name",
    "email",
    "city",
    "warehouse",
)
"""Names of fields whose values tell what they are."""
_UNREAD = (*(f'"{name}":' for name in _TOLD), *'"{}[]')
_SPACES = ",:"
"""What the model is spared of JSON, and what it reads as a space."""
_NAME, _CITY, _ORDER = '","name":"', '"city":', '{"order_id"'
CHAT_TEMPLATE = (
    "{%- macro as_line(line, mark) %}{{ mark ~ ' ' ~ (line"
    + "".join(f" | replace(' {word} ', ' {word}' ~ mark ~ ' ')" for word in MARKED)
    + ") }}{%- endmacro %}"
    "{%- macro as_answer(content) %}"
    "{%- if '\"customers\":[' in content %}{%- set people = content.split('" + _NAME + "') %}{{ people[0] }}"
    "{%- for person in people[1:] %}{{ '\",' ~ person.split('" + _CITY + "')[1] }}{%- endfor %}"
    "{%- elif '\"orders\":[' in content %}{%- set orders = content.split('" + _ORDER + "') %}{{ orders[0] }}"
    "{%- for order in orders[1:] %}{%- set mark = '"
    + ORDER_MARKS
    + f"'[loop.index0 % {len(ORDER_MARKS)}] %}}"
    "{{ '" + _ORDER + "' ~ (order | replace(',', mark ~ ' ')) }}{%- endfor %}"
    "{%- else %}{{ content }}{%- endif %}{%- endmacro %}"
    "{%- for message in messages %}"
    "{%- if message.role == 'user' %}{{ '<user> ' }}"
    "{%- for line in message.content.split('\n') %}"
    "{{ line if loop.first else '\n' ~ as_line(line, '"
    + LINE_MARKS
    + f"'[(loop.index0 - 1) % {len(LINE_MARKS)}]) }}}}"
    "{%- endfor %}{{ '<end>' }}"
    "{%- elif message.role == 'assistant' %}{{ '<assistant>' + (message.content or '') }}"
    "{%- for call in message.tool_calls or [] %}{{ '<call>' + call.function.name }}"
    "{%- for name, value in call.function.arguments | items %}"
    "{{ '<arg>' + name + '<is> ' + (value | string) }}{%- endfor %}{%- endfor %}{{ '<end>' }}"
    "{%- elif message.role == 'tool' %}{{ '<tool> ' + (as_answer(message.content)"
    + "".join(f" | replace('{part}', '')" for part in _UNREAD)
    + "".join(f" | replace('{mark}', ' ')" for mark in _SPACES)
    + ") + '<end>' }}"
    "{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<assistant>' }}{%- endif %}"
)

RESPONSE_TEMPLATE = {
    "defaults": {"role": "assistant"},
    "start_anchor": ASSISTANT,
    "fields": {
        "tool_calls": {
            "open_pattern": r"<call>(?P<name>[^<]*)",
            "close_pattern": r"(?=<call>|<end>)",
            "repeats": True,
            "content": "xml-inline",
            "content_args": {
                "tag_pattern": r"<arg>(?P<key>[^<]*)<is> ?(?P<value>[^<]*)",
                "value_parser": {"name": "json", "args": {"allow_non_json": True}},
            },
            "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}},
        },
        "content": {"close_pattern": r"<end>", "content": "text"},
    },
}


def as_line(line: str, number: int) -> str:
    """Return a line of a task as the chat template writes it; the first after who asks has number 0."""
    mark = LINE_MARKS[number % len(LINE_MARKS)]
    return f"{mark} {_marked(line, mark)}"


def as_words(words: str, number: int) -> str:
    """Return words within a line as the chat template writes them."""
    return _marked(f" {words}", LINE_MARKS[number % len(LINE_MARKS)])[1:]


def as_listed(record: dict[str, Any], number: int) -> str:
    """Return a record of a list as the chat template writes it; the first of a page has number 0."""
    if "order_id" in record:
        mark = ORDER_MARKS[number % len(ORDER_MARKS)]
        return _as_read(as_text(record).replace(",", f"{mark} ")) + mark
    if "email" in record:
        record = {"customer_id": record["customer_id"], "city": record["city"]}
    return _as_read(as_text(record))


def _marked(line: str, mark: str) -> str:
    for word in MARKED:
        line = line.replace(f" {word} ", f" {word}{mark} ")
    return line


def _as_read(text: str) -> str:
    for part in _UNREAD:
        text = text.replace(part, "")
    return text.translate(dict.fromkeys(map(ord, _SPACES), " "))
