"""The generator: from a world seed to a task, with nothing else entering.

Steps, whose numbers the code repeats:

1. Draw the templates and their forms. Forms, and the world with them, are drawn again until the plan fits the
   budget even if every write has to be sent twice, as in the challenge regime. Templates are never redrawn:
   their weights hold.
2. Make the customer who asks, a namesake and strangers.
3. Make one order a sub-request, in the state that its template needs, and orders nobody asks about.
4. Stock the warehouses: goods that are to be reserved lie in one warehouse in sufficient number, and in too
   small a number in the others.
5. Put it into words; make the plan; carry it out on the world for the expected end state.

Source:
    Paper app:env, "Tasks".
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from toolkit.lab.backoffice.records import Record
from toolkit.lab.backoffice.tools import TOOLS, execute
from toolkit.lab.backoffice.world import Base, build_base, untouched
from toolkit.lab.tasks.orders import OrderMaker, make_people
from toolkit.lab.tasks.requests import Request, count_writes, plan, write_prompt
from toolkit.lab.tasks.task import Call, Task, budget
from toolkit.lab.tasks.templates import CUSTOMERS, FORMS, ORDERS, REQUESTS_PER_TASK, WEIGHTS, Form
from toolkit.seeds import Stream, world_seed


@lru_cache(maxsize=4096)
def generate(pool: str, candidate: int, index: int) -> Task:
    """Return the task of a candidate number of a pool; it is made once, however often it is asked for."""
    seed = world_seed(pool, candidate)
    stream = Stream(seed)
    # 1.
    templates = [stream.weighted(WEIGHTS) for _ in range(stream.weighted(REQUESTS_PER_TASK))]
    while True:
        customer_by = _form(stream, CUSTOMERS)
        forms = [_form(stream, FORMS[template]) for template in templates]
        orders_by = [_form(stream, ORDERS) for _ in templates]
        # 2. to 4.
        people = make_people(stream, pool, candidate)
        maker = OrderMaker(stream, people)
        requests = tuple(
            maker.request(template, form, named_by)
            for template, form, named_by in zip(templates, forms, orders_by, strict=True)
        )
        maker.add_bystanders()
        requests = tuple(_with_named(request, maker) for request in requests)
        calls = plan(people.customer, customer_by, requests)
        writes = count_writes(calls)
        if len(calls) + writes <= budget(writes):
            break
    # 5.
    base = build_base(maker.all_records())
    return Task(
        task_id=f"{pool}:{index}",
        pool=pool,
        index=index,
        world_seed=seed,
        prompt=write_prompt(stream, people.customer, customer_by, requests),
        templates=tuple(templates),
        forms=tuple(forms),
        base=base,
        plan=calls,
        expected=carry_out(base, calls),
        writes=writes,
        budget=budget(writes),
    )


def carry_out(base: Base, calls: Sequence[Call]) -> Mapping[str, Record]:
    """Return the records that a plan changes, as it leaves them."""
    world = untouched(base)
    for call in calls:
        tool = TOOLS[call.tool]
        if tool.kind == "write":
            arguments = {p.name: call.arguments.get(p.name, p.default) for p in tool.parameters}
            world, _ = execute(tool, world, arguments)
    return world.changes


def _form(stream: Stream, forms: Sequence[Form]) -> str:
    return stream.weighted([(form.name, form.weight) for form in forms])


def _with_named(request: Request, maker: OrderMaker) -> Request:
    """Name an order by its date where no product of it is its own among the customer's orders."""
    if request.named_by == "product" and maker.own_product(request.order) is None:
        return replace(request, named_by="date")
    if request.named_by == "product":
        return replace(request, slots={**request.slots, "own_product": maker.own_product(request.order)})
    return request
