"""The published study's four pools of tasks, generated from their seed, and compared with a checkout."""

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from toolkit.errors import IncompleteError, VerificationError
from toolkit.lab.worlds.published import words as vocabulary
from toolkit.lab.worlds.published.tools import LAST_DAY, Shop
from toolkit.lab.worlds.published.words import Words
from toolkit.lab.worlds.published.world import (
    CARRIERS,
    CATEGORIES,
    PRIORITIES,
    TODAY,
    Record,
    World,
    make_world,
    missing,
    refunded,
    total,
    unpacked,
)
from toolkit.prereg.adoption import MAX_POOL, Folder
from toolkit.rooms import Regenerated

Task = dict[str, Any]
Say = Callable[[str], None]

SEED = 20260904
SEEDS = {"heldout": (700, 100_000, 200_000), "train": (2060, 0, 100_000)}
"""Generated tasks, and the range of the seeds of their worlds."""
KEPT = {"train": 2000, "heldout": 300, "test": 300, "diagnostic": 16}
DIAGNOSTIC, DIAGNOSTIC_WRITES = slice(300, 360), range(2, 5)
REQUESTS = {1: 20, 2: 40, 3: 40}
"""Requests of a task → its weight."""
TEMPLATES = {
    "address_change": 3.0,
    "cancel_pending": 2.0,
    "cancel_paid_refund": 3.0,
    "partial_refund_delivered": 3.0,
    "reserve_and_ship": 5.0,
    "ship_reserved": 3.0,
    "open_ticket": 1.2,
    "open_ticket_no_order": 0.6,
}
"""Template of a request → its weight."""
WORDED = ("reason", "city", "summary")
"""Arguments of a plan that are words; of a street, the number is none."""


PUBLISHED = {
    "train": ((395, 763, 842), (318, 569, 609, 308, 111, 69, 15, 1)),
    "heldout": ((48, 137, 115), (37, 99, 95, 37, 20, 8, 4)),
    "test": ((53, 135, 112), (40, 105, 91, 36, 15, 11, 2)),
    "diagnostic": ((1, 8, 7), (0, 8, 6, 2)),
}
"""Pool → tasks with one request, two, …, and with one write, two, …: as the authors' manifest counts them."""
STRUCTURES = {
    "train": "d2fe7c94955ba82dd9e394ee9610e4ce65ae2680f4e2035d6c70e874764ae402",
    "heldout": "9c7cf85c491a4fba582ccd2bbea3233900d9187ea420b7b469a22144c0498d1d",
    "test": "6a4ca139a7967e9c0765e869e68f24bccf6c5a3238d488e0c5bf4abde3a1c35f",
    "diagnostic": "ad829e93a63b43f946bbc89a5f7e0740778b2d5e437ca1bcdfd8a27cc882db85",
}
"""Pool → SHA-256 of what `structure` leaves of the authors' file."""


class Request(NamedTuple):
    """One request of a task."""

    template: str
    order: str | None
    plan: list[Record]
    sentence: str


class Draft(NamedTuple):
    """What requests are drawn from."""

    draw: random.Random
    words: Words
    world: World
    reference: str  # how orders are referred to


def pools(
    words: Words, progress: Say = lambda _: None, splits: Sequence[str] = tuple(SEEDS)
) -> dict[str, list[Task]]:
    """Return the tasks of pools, by the pool's name: of all, or of those that come from some splits."""
    made: dict[str, list[Task]] = {}
    for split in splits:
        progress(f"generating {split} tasks")
        draw = random.Random(f"{split}-{SEED}")  # noqa: S311 - as theirs
        drawn = [_task(split, draw, words) for _ in range(SEEDS[split][0])]
        first = {task["world_seed"]: task for task in reversed(drawn)}
        made[split] = [task for task in drawn if task is first[task["world_seed"]]]
    held = made.get("heldout", [])
    made["diagnostic"] = [task for task in held[DIAGNOSTIC] if task["n_subgoals"] in DIAGNOSTIC_WRITES]
    made["test"] = held[DIAGNOSTIC.stop :]
    return {
        pool: [
            {**task, "split": pool, "task_id": f"{pool}-{n:05d}"} for n, task in enumerate(made[pool][:kept])
        ]
        for pool, kept in KEPT.items()
        if made.get(pool)
    }


def _task(split: str, draw: random.Random, words: Words) -> Task:
    """Return a task of the first world, and in it of the first customer, that can have it."""
    while True:
        seed = draw.randrange(*SEEDS[split][1:])
        world = make_world(seed, words)
        count = draw.choices(list(REQUESTS), list(REQUESTS.values()))[0]
        draft = Draft(draw, words, world, draw.choice(("description", "id")))
        customers = list(world.customers)
        draw.shuffle(customers)
        for customer in customers:
            requests = _requests(draft, customer, count)
            if len(requests) < count:
                continue
            draw.shuffle(requests)
            plan = [call for request in requests for call in request.plan]
            if any("error" in answer for answer in played(unpacked(world.packed()), plan)[1]):
                continue
            return {
                "customer_id": customer,
                "instruction": _instruction(draft, world.customers[customer], requests),
                "n_subgoals": len(plan),
                "oracle_plan": plan,
                "order_ids": sorted({request.order for request in requests if request.order}),
                "reference": draft.reference,
                "templates": [request.template for request in requests],
                "world_seed": seed,
            }


def played(world: World, plan: Sequence[Record]) -> tuple[World, list[Record]]:
    """Return a world after a plan, and the answers to its calls."""
    shop = Shop(world)
    return world, [shop.call(call["tool"], call["args"]) for call in plan]


def _requests(draft: Draft, customer: str, count: int) -> list[Request]:
    """Return requests of a customer, fewer where there are not as many."""
    orders = [order for order in draft.world.orders.values() if order["customer_id"] == customer]
    requests: list[Request] = []
    used: set[str] = set()
    has_ticket = False
    while orders and len(requests) < count:
        free = [order for order in orders if order["order_id"] not in used]
        options = {
            template: (free or orders)
            if template.startswith("open_ticket")
            else [order for order in free if _is_eligible(template, draft.world, order)]
            for template in sorted(TEMPLATES)
            if not (has_ticket and template.startswith("open_ticket"))
        }
        names = [template for template, eligible in options.items() if eligible]
        if not names:
            break
        template = draft.draw.choices(names, [TEMPLATES[name] for name in names])[0]
        order = draft.draw.choice(options[template])
        requests.append(_request(draft, template, order))
        if template.startswith("open_ticket"):
            has_ticket = True
        else:
            used.add(order["order_id"])
    return requests


def _is_eligible(template: str, world: World, order: Record) -> bool:
    status, lacks = order["status"], missing(order)
    match template:
        case "address_change":
            return status in {"pending", "paid"}
        case "cancel_pending":
            return bool(status == "pending")
        case "cancel_paid_refund":
            return status == "paid" and not order["refunds"]
        case "partial_refund_delivered":
            return status == "delivered" and bool(_refundable(order))
        case "ship_reserved":
            return status == "paid" and not lacks
    # To be reserved and shipped
    return status == "paid" and bool(lacks) and all(world.available(sku) >= n for sku, n in lacks.items())


def _refundable(order: Record) -> list[Record]:
    balance = total(order) - refunded(order)
    return [item for item in order["items"] if item["quantity"] * item["unit_price_cents"] <= balance]


def _request(draft: Draft, template: str, order: Record) -> Request:
    draw, words, name = draft.draw, draft.words, order["order_id"]
    linked, said = name, _described(draft, order, [item["sku"] for item in order["items"]], "order_of_item")
    match template:
        case "address_change":
            address = _new_address(draft, order["shipping_address"])
            plan = [_call("update_shipping_address", order_id=name, **address)]
            blanks = [said, *address.values()]
        case "cancel_pending" | "cancel_paid_refund":
            plan = [_call("cancel_order", order_id=name, reason=words.reasons["cancelled"])]
            if template == "cancel_paid_refund":
                why = words.reasons["refund"]
                plan.append(_call("issue_refund", order_id=name, amount_cents=total(order), reason=why))
            blanks = [said]
        case "partial_refund_delivered":
            item = draw.choice(_refundable(order))
            sku, quantity = item["sku"], item["quantity"]
            amount, why = quantity * item["unit_price_cents"], words.reasons["damaged"]
            plan = [_call("issue_refund", order_id=name, amount_cents=amount, reason=why)]
            said = _described(draft, order, [sku], "order_of_day")
            blanks = [quantity, words.units[quantity > 1], draft.world.products[sku]["name"], said]
        case "reserve_and_ship" | "ship_reserved":
            carrier, day = draw.choice(CARRIERS), draw.randint(TODAY, LAST_DAY)
            lacks = missing(order).items()
            plan = [_call("reserve_stock", sku=sku, quantity=n, order_id=name) for sku, n in lacks]
            plan.append(_call("schedule_shipment", order_id=name, carrier=carrier, day=day))
            blanks = [said, carrier, day]
        case _:
            linked = name if template == "open_ticket" else None
            about = {"category": draw.choice(CATEGORIES), "priority": draw.choice(PRIORITIES)}
            about["summary"] = draw.choice(words.lists["summary"])
            customer = order["customer_id"]
            plan = [_call("create_ticket", customer_id=customer, order_id=linked or "", **about)]
            blanks = [about["priority"], about["category"], *([said] if linked else []), about["summary"]]
    return Request(template, linked, plan, words.say(template, *blanks))


def _call(tool: str, **arguments: object) -> Record:
    return {"args": arguments, "tool": tool}


def _new_address(draft: Draft, old: Record) -> Record:
    draw, lists = draft.draw, draft.words.lists
    while True:
        street = f"{draw.randint(1, 250)} {draw.choice(lists['new_street'])}"
        city, code = draw.choice(lists["new_city"]), str(draw.randint(1000, 9999))
        address = {"street": street, "city": city, "postal_code": code}
        if address != old:
            return address


def _described(draft: Draft, order: Record, items: Sequence[str], sentence: str) -> str:
    """Return how an order is referred to: by an item that the customer did not order twice on one day."""
    world, words, day = draft.world, draft.words, order["placed_on_day"]
    others = [
        {item["sku"] for item in other["items"]}
        for other in world.orders.values()
        if other["customer_id"] == order["customer_id"]
        and other["placed_on_day"] == day
        and other is not order
    ]
    clear = [sku for sku in items if not any(sku in other for other in others)]
    if draft.reference == "id" or not clear:
        return words.say("order", order["order_id"])
    name = [world.products[clear[0]]["name"]] if sentence == "order_of_item" else []
    return words.say(sentence, day, *name)


def _instruction(draft: Draft, customer: Record, requests: Sequence[Request]) -> str:
    words, style = draft.words, draft.draw.choice(("name", "email", "phone"))
    who = words.say(style, *dict.fromkeys((customer["name"], customer[style])))
    beginning = (who[0].upper(), who[1:])
    if len(requests) == 1:
        body = words.say("one", *beginning, requests[0].sentence)
    else:
        asked = zip(words.ordinals, (request.sentence for request in requests), strict=False)
        parts = [words.say("part", *each) for each in asked]
        body = words.say("several", *beginning, len(requests)) + " ".join(parts)
    return words.say("task", TODAY, body)


def pool_bytes(tasks: Sequence[Task]) -> bytes:
    """Return a pool as the authors' file has it."""
    return "".join(f"{json.dumps(task, sort_keys=True)}\n" for task in tasks).encode()


def structure(task: Task) -> Task:
    """Return what is left of a task without its words."""
    plan = [{**call, "args": _unworded(call["args"])} for call in task["oracle_plan"]]
    return {**task, "oracle_plan": plan, "instruction": ""}


def _unworded(arguments: Record) -> Record:
    left = {name: value for name, value in arguments.items() if name not in WORDED}
    return left | ({"street": left["street"].split()[0]} if "street" in left else {})


def training_order(run_seed: int) -> list[int]:
    """Return the positions of the training pool as a run meets them, row by row, and again from the first."""
    order = list(range(KEPT["train"]))
    random.Random(f"rows-{run_seed}").shuffle(order)  # noqa: S311 - as theirs
    return order


def check_structure(made: Mapping[str, Sequence[Task]]) -> int:
    """Check that pools are the published ones but for their words, and return how many tasks there are."""
    for pool, tasks in made.items():
        counters = Counter(len(task["templates"]) for task in tasks), Counter(t["n_subgoals"] for t in tasks)
        counts = tuple(tuple(each[n + 1] for n in range(max(each, default=0))) for each in counters)
        digest = hashlib.sha256(pool_bytes([structure(task) for task in tasks])).hexdigest()
        for what, expected, found in (
            ("tasks by requests, and by writes", PUBLISHED[pool], counts),
            ("SHA-256 of the tasks without their words", STRUCTURES[pool], digest),
        ):
            if found != expected:
                problem = f"pool {pool} is not the published one: {what}"
                raise VerificationError(problem, expected=expected, found=found)
    return sum(map(len, made.values()))


def regenerate(
    checkout: Folder, registered: Mapping[str, str], progress: Say
) -> tuple[Regenerated, dict[str, bytes]]:
    """Generate the pools with a checkout's words, and compare them with its files and registered hashes."""
    try:
        files = vocabulary.sources(checkout)
    except IncompleteError as error:
        return Regenerated(0, (), (f"the tasks generated anew: {error.problem}",)), {}
    except VerificationError as error:
        found = f"{error.problem}: expected {error.expected}, found {error.found}"
        return Regenerated(0, (found,), ()), {}
    made = pools(vocabulary.read_words(files), progress)
    differences, absent = [], []
    for path, digest in registered.items():
        content = pool_bytes(made.get(path.rpartition("/")[2].removesuffix(".jsonl"), ()))
        found = hashlib.sha256(content).hexdigest()
        if found != digest:
            differences.append(f"{path} generated anew: expected SHA-256 {digest}, found {found}")
        if checkout.has(path):
            differences += _first_difference(path, content, checkout.read(path, MAX_POOL))
        else:
            absent.append(f"{path}, task by task")
    return Regenerated(sum(map(len, made.values())), tuple(differences), tuple(absent)), files


def _first_difference(path: str, made: bytes, found: bytes) -> Iterator[str]:
    lines = zip_longest(made.splitlines(keepends=True), found.splitlines(keepends=True))
    for number, (here, there) in enumerate(lines, 1):
        if here != there:
            name = json.loads(here)["task_id"] if here else "no task"
            shown = "nothing" if there is None else "another text"
            yield f"{path}, line {number}: the seed gives {name}, and the file has {shown}"
            return
