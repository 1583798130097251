/** On the page of the world: recorded episodes step by step, and any event's draw. */

import { mountDraw } from "./drawbox";
import { element } from "../../browser/src/page";
import { Player } from "../../browser/src/player";

const player = document.querySelector<HTMLElement>("#player");
if (player) new Player(player);
if (document.querySelector("#draw")) mountDraw(element("#draw", HTMLElement));
