// What a status means, and what to do about it.
import { percent } from "./dom.js";
import { Status } from "./model.js";

export const UNLIKE = "Unlike anything I was trained on";
export const UNSURE = "Not sure";

export function problems(found, facts) {
  const told = [];
  const name = found.flagged === undefined ? "an input" : facts.inputs[found.flagged].name;
  if (found.status & Status.MISSING)
    told.push(`${name} is missing, and the model was never trained without it: give a number.`);
  if (found.status & Status.OUT_OF_RANGE)
    told.push(`${name} lies beyond what the model was trained on. What it says here is a guess, ` +
      "and its interval was widened: trust it as little as the average of all training rows.");
  if (found.status & Status.UNKNOWN_LEVEL)
    told.push(`${name} is a level that the model never saw: choose one of the list.`);
  if (found.status & Status.UNLIKE)
    told.push("The inputs together are unlike the training rows: check them, or do not use this.");
  if (found.status & Status.UNSURE)
    told.push("The model abstains here: ask again with other inputs, or decide yourself.");
  return told;
}

// The most probable class; nothing where there is none.
export function likeliest(found, facts) {
  const name = facts.classes[found.label];
  return name === undefined ? null : `${name}, ${percent(found.probability)}`;
}

// The answer of a classifier in words, with abstentions as answers like any other.
export function verdict(found, facts) {
  if (found.status & Status.NOT_ENOUGH_DATA) return { kind: "waiting", text: "Listening …" };
  if (found.status & (Status.UNLIKE | Status.OUT_OF_RANGE | Status.UNKNOWN_LEVEL))
    return { kind: "unlike", text: UNLIKE };
  if (found.status & Status.MISSING) return { kind: "unlike", text: facts.face === "windows"
    ? "A sensor is missing" : "No prediction" };
  if (found.status & Status.UNSURE || found.label < 0)
    return { kind: "unsure", text: UNSURE };
  return { kind: "sure", text: facts.classes[found.label] };
}
