"""The eight templates: their weights, their forms, and how each is put into words."""

from typing import Literal, NamedTuple

Template = Literal[
    "address_change",
    "cancel_pending",
    "cancel_paid_refund",
    "partial_refund",
    "reserve_and_ship",
    "ship_reserved",
    "open_ticket",
    "open_ticket_no_order",
]

WEIGHTS: tuple[tuple[Template, int], ...] = (
    ("address_change", 30),
    ("cancel_pending", 20),
    ("cancel_paid_refund", 30),
    ("partial_refund", 30),
    ("reserve_and_ship", 50),
    ("ship_reserved", 30),
    ("open_ticket", 12),
    ("open_ticket_no_order", 6),
)
REQUESTS_PER_TASK = ((1, 20), (2, 40), (3, 40))


class Form(NamedTuple):
    """A way of asking."""

    name: str  # unique within its template
    # How often it is drawn, among the forms of the template; tasks too long for their budget are drawn
    # again, which favours forms that need fewer calls
    weight: int
    phrasings: tuple[str, ...]  # texts with slots in braces


_PHRASINGS: dict[Template, dict[tuple[str, int], tuple[str, ...]]] = {
    "address_change": {
        ("whole", 5): (
            "Change the delivery address of {order} to {street}, {postal_code} {city}, {country}.",
            "Please have {order} sent to {street}, {postal_code} {city}, {country} instead.",
            "New address for {order}: {street}, {postal_code} {city}, {country}.",
            "Customer moved. Send {order} to {street}, {postal_code} {city}, {country}.",
        ),
        ("street", 5): (
            "The street on {order} is wrong: it should be {street}. Keep the rest of the address.",
            "Only the street of {order} changes, to {street}; city and postal code stay.",
            "Correct the street of {order} to {street} and leave everything else as it is.",
        ),
    },
    "cancel_pending": {
        ("cancel", 1): (
            "Cancel {order}; it has not been paid.",
            "Please call off {order}. No payment was made.",
            "There is no need for {order} any more, and nothing was paid: cancel it.",
            "Unpaid and no longer wanted: cancel {order}.",
        )
    },
    "cancel_paid_refund": {
        ("refund", 1): (
            "Cancel {order} and then refund everything that can be refunded on it.",
            "Please call off {order}, which was paid, and pay back the whole refundable amount.",
            "Paid but no longer wanted: cancel {order} and return all that is then refundable.",
            "Stop {order} before it leaves and refund all of what becomes refundable.",
        )
    },
    "partial_refund": {
        ("amount", 4): (
            "Refund {amount} on {order} because of the {product}.",
            "Please pay back {amount} for the {product} on {order}, as agreed.",
            "We promised {amount} back on {order} for the late {product}; please refund it.",
        ),
        ("line", 4): (
            "Refund every {product} on {order} at its full price.",
            "The {product} line of {order} was faulty throughout; refund all units of it.",
            "Give the money back for all of the {product} on {order}.",
        ),
        ("unit", 2): (
            "Refund a single {product} on {order}; the others are fine.",
            "Just one {product} of {order} arrived broken: refund that one unit.",
            "Pay back the price of one {product} on {order}, not of all of them.",
        ),
    },
    "reserve_and_ship": {
        ("explicit", 2): (
            "Reserve {quantity} of {product_id} at {warehouse} for {order}, then ship it {service}.",
            "Set {quantity} x {product_id} aside in {warehouse} for {order} and send it {service}.",
            "For {order}, book {quantity} of {product_id} from {warehouse}, then {service} shipping.",
        ),
        ("warehouse", 5): (
            "Reserve everything on {order} at {warehouse}, then ship it {service}.",
            "Set all goods of {order} aside in {warehouse} and send it {service}.",
            "Pack {order} from {warehouse}: reserve every line in full, then {service} shipping.",
        ),
        ("search", 3): (
            "Reserve each line of {order} where one warehouse has enough of it, then ship it {service}.",
            "For each line of {order} reserve from a warehouse that can fill it; then send it {service}.",
            "Any warehouse that can fill a whole line will do: reserve {order}, then {service} shipping.",
        ),
    },
    "ship_reserved": {
        ("ship", 1): (
            "The goods for {order} are set aside already; ship it {service}.",
            "All stock of {order} is reserved. Send it {service}.",
            "Please schedule {service} shipping for {order}, which is reserved in full.",
            "Everything on {order} waits in the warehouse: {service} shipping, please.",
        )
    },
    "open_ticket": {
        ("ticket", 1): (
            "Open a {priority} priority ticket in the category {category} about {order}: {summary}",
            "Log a ticket under {category} with {priority} priority for {order}. Note: {summary}",
            "File a ticket on {order} ({category}, {priority} priority). It should say: {summary}",
        )
    },
    "open_ticket_no_order": {
        ("ticket", 1): (
            "Open a {priority} priority ticket in the category {category} for this customer: {summary}",
            "Log a ticket under {category} with {priority} priority, tied to no order. Note: {summary}",
            "File a general ticket ({category}, {priority} priority). It should say: {summary}",
        )
    },
}
FORMS: dict[Template, tuple[Form, ...]] = {
    template: tuple(Form(name, weight, phrasings) for (name, weight), phrasings in forms.items())
    for template, forms in _PHRASINGS.items()
}

# How the customer and an order are named: by identifier, or so that a search or a list finds them.
CUSTOMERS = (
    Form(
        "id",
        2,
        (
            "Customer {customer_id} asks:",
            "Request from customer {customer_id}:",
            "Account {customer_id} wrote in:",
        ),
    ),
    Form("email", 4, ("Email from {email}:", "Message received from {email}:", "{email} writes:")),
    Form(
        "name",
        3,
        ("{name} from {city} called:", "Phone note, caller {name} of {city}:", "Letter from {name}, {city}:"),
    ),
)
ORDERS = (
    Form("id", 5, ("order {order_id}",)),
    Form("date", 3, ("the order of {date}", "the order placed on {date}")),
    Form("product", 2, ("the order with the {product}",)),
)
MARKS = (("", "", ""), ("1. ", "2. ", "3. "), ("- ", "- ", "- "), ("(a) ", "(b) ", "(c) "))
CLOSINGS = ("", "", "Thank you.", "Please finish when all of it is done.", "Nothing else should change.")
