"""Names and values that worlds and prompts are made of; none of them means a real person or shop."""

GIVEN_NAMES = tuple(
    "Ada Alma Amir Anouk Aron Bea Bruno Carla Chidi Clara Dario Delia Diego Edda Elias Emre Esther Farah "
    "Felix Freya Gabor Greta Hana Hugo Ida Imani Ines Ivo Jana Jonas Juno Kaito Kira Lale Leif Lena Luca "
    "Maja Malik Mara Mateo Mina Nadia Nico Noor Olga Omar Paula Petra Quentin Rafael Rosa Sami Selma Tarek "
    "Thea Tomas Ulla Vera Yusuf".split()
)
# Each pool has surnames of its own, so that no customer of one pool can be met in another.
SURNAMES = {
    "train": tuple(
        "Abbott Adeyemi Albrecht Amara Andersen Baptiste Barros Becker Bergman Bianchi Blum Borg Calder "
        "Castillo Cerny Chandra Costa Dahl Demir Dubois Eklund Esposito Falk Fontaine Fuentes Gallo Garnier "
        "Haddad Halvorsen Hansen Hofmann Ivanova Jansen Kamara Keller Kovacs Lambert Larsen Leclerc Lindgren "
        "Marek Mendes Moreau Nakata Novak Okafor Oliveira Pereira Ricci Rossi".split()
    ),
    "validation": tuple(
        "Saarinen Salazar Santos Schmitt Sandoval Serrano Sokolov Steiner Svensson Szabo Sorensen Sato "
        "Silvestri Stanek Sylla".split()
    ),
    "test": tuple(
        "Tanaka Teixeira Thorsen Tomasi Torres Toth Traore Tremblay Turan Tveit Tamm Takala Tessier Tichy "
        "Tolstova".split()
    ),
    "diagnostic": tuple("Vargas Vidal Villa Virtanen Vogel Volkova Vries Vasile Vesely Vinter".split()),
    "diagnostic_128": tuple("Wagner Walsh Weber Weiss Werner Wolff Wojcik Winkler Wallin Westberg".split()),
}
MAIL_DOMAINS = ("mail.example", "post.example", "inbox.example", "letters.example")

STREETS = tuple(
    "Alder Road|Ash Lane|Birch Street|Brook Lane|Canal Street|Cedar Avenue|Chapel Road|Church Street|"
    "Clover Lane|Elm Street|Fern Road|Garden Street|Harbour Road|Hazel Lane|Hill Street|Juniper Avenue|"
    "Lime Street|Linden Avenue|Maple Road|Market Street|Meadow Lane|Mill Road|Oak Street|Orchard Road|"
    "Park Avenue|Poplar Lane|Quay Street|River Road|Rowan Street|Station Road|Willow Lane|Yew Street".split(
        "|"
    )
)
# City, postal code, country. Leading zeros are meant: they are what careless number handling loses.
PLACES = (
    ("Lisbon", "1100-148", "Portugal"),
    ("Porto", "4050-253", "Portugal"),
    ("Leipzig", "04109", "Germany"),
    ("Dresden", "01067", "Germany"),
    ("Bremen", "28195", "Germany"),
    ("Lyon", "69002", "France"),
    ("Nice", "06000", "France"),
    ("Lille", "59000", "France"),
    ("Turin", "10121", "Italy"),
    ("Rome", "00184", "Italy"),
    ("Madrid", "28013", "Spain"),
    ("Barcelona", "08002", "Spain"),
    ("Krakow", "31-042", "Poland"),
    ("Gdansk", "80-830", "Poland"),
    ("Tallinn", "10146", "Estonia"),
    ("Helsinki", "00100", "Finland"),
    ("Turku", "20100", "Finland"),
    ("Oslo", "0151", "Norway"),
    ("Bergen", "5003", "Norway"),
    ("Leeds", "LS1 4DY", "United Kingdom"),
    ("Bath", "BA1 1LZ", "United Kingdom"),
    ("Cork", "T12 W8KP", "Ireland"),
)
WAREHOUSES = ("Aarhus", "Brno", "Ghent", "Malaga", "Riga", "Trieste")

MATERIALS = tuple(
    "walnut oak copper linen bamboo marble canvas leather cotton steel glass wool cork ceramic".split()
)
GOODS = tuple(
    "desk lamp chair shelf vase basket kettle rug mirror clock stool tray blanket cushion teapot planter "
    "candle bowl frame bench".split()
)

SUMMARIES = {
    "delivery": (
        "The parcel was left with a neighbour who is away.",
        "The tracking page has not changed for a week.",
        "The courier could not find the entrance.",
    ),
    "damage": (
        "The box was crushed at one corner.",
        "There is a crack along the edge.",
        "The surface is scratched on arrival.",
    ),
    "billing": (
        "The card was charged twice.",
        "The invoice shows the wrong company name.",
        "The discount code was not applied.",
    ),
    "account": (
        "The password reset mail never arrives.",
        "Two accounts should be merged into one.",
        "The newsletter cannot be switched off.",
    ),
    "other": (
        "A handwritten card should go with the next parcel.",
        "The customer asks for the assembly manual.",
        "The customer wants to thank the packing team.",
    ),
}
MONTHS = tuple(
    "January February March April May June July August September October November December".split()
)
