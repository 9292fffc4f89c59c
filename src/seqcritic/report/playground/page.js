// What a reader does: types, takes other tokens, moves along the prediction. Every change computes everything again.

const NUM_CANDIDATES = 5; // by probability, and as many by value
const SMALLEST_LOSS = 0.05; // of the largest reward a token can have: smaller ones are noise of the critic
const find = (id) => document.getElementById(id);

const model = openModel(JSON.parse(find("description").textContent), find("weights").textContent);
const codec = openCodec(model.codec);
// One right token earns one, or its share of the text where the score is divided by the length.
const page = { source: [], reference: [], tokens: [], steps: [], current: 0, unit: 1 };

function add(parent, name, className, text) {
  const element = document.createElement(name);
  if (className) {
    element.className = className;
  }
  if (text !== undefined) {
    element.textContent = text;
  }
  parent.append(element);
  return element;
}

const SIGNS = { " ": "␣", "\u00a0": "␣", "\t": "⇥", "\n": "⏎", "\r": "⏎" };

function show(token, textOf = codec.targetToken) {
  return token === model.end ? "∅" : textOf(token).replace(/[ \u00a0\t\n\r]/g, (space) => SIGNS[space]);
}

function spell(token) {
  return token === model.end ? "the end" : `“${show(token)}”`;
}

function percent(probability) {
  return probability >= 0.0995 ? `${Math.round(100 * probability)} %` : `${(100 * probability).toFixed(1)} %`;
}

function signed(number, digits = 2) {
  const text = Math.abs(number).toFixed(digits);
  return Number(text) === 0 ? text : `${number < 0 ? "−" : "+"}${text}`;
}

function plain(number, digits = 2) {
  return number.toFixed(digits).replace("-", "−");
}

function largest(values) {
  return values.reduce((most, value) => Math.max(most, value), -Infinity);
}

function meanValue(one) {
  return one.values.reduce((sum, value, token) => sum + one.probabilities[token] * value, 0);
}

function lossOf(one) {
  return one.values === null ? 0 : largest(one.values) - one.values[one.token];
}

// --- computing ---------------------------------------------------------------------------------------------------

function limit() {
  return Math.floor(model.limits.factor * page.source.length + model.limits.extra);
}

function readTexts() {
  page.source = [...codec.encodeSource(find("source").value), model.end];
  page.reference = [...codec.encodeTarget(find("reference").value), model.end];
  const length = Math.max(1, page.reference.length - 1);
  page.unit = model.score !== null && model.score.normalise ? 1 / length : 1;
}

function write(beginning, choose) {
  page.tokens = goOn(model.actor, page.source, beginning, model.end, limit(), choose);
}

// The prediction ends with the end token, though the actor may have been cut before it.
function followPrediction() {
  const end = page.tokens.indexOf(model.end);
  page.tokens = [...(end < 0 ? page.tokens : page.tokens.slice(0, end)), model.end];
  page.steps = follow(model, page.source, page.reference, page.tokens);
  page.current = Math.min(page.current, page.steps.length - 1);
}

// The reader would begin where the first large fault is: what follows it may follow from it.
function goToFault() {
  const losses = page.steps.map(lossOf);
  const large = 0.8 * largest(losses);
  page.current = losses.findIndex((loss) => loss >= large);
}

// --- drawing -----------------------------------------------------------------------------------------------------

function drawStrip(id, tokens, textOf, weights) {
  const strip = find(id);
  strip.replaceChildren();
  tokens.forEach((token, place) => {
    const cell = add(strip, "li", "", show(token, textOf));
    cell.style.setProperty("--w", weights === null ? 0 : weights[place].toFixed(3));
  });
}

function describeStep(one, place) {
  const parts = [`Step ${place + 1} of ${page.steps.length}: ${spell(one.token)}`];
  parts.push(`probability ${percent(one.probabilities[one.token])}`);
  if (one.values !== null) {
    parts.push(`value ${plain(one.values[one.token])}, ${plain(lossOf(one))} below the best`);
  }
  return parts.join(", ");
}

function drawTiles() {
  const tiles = find("tiles");
  const hadFocus = tiles.contains(document.activeElement);
  tiles.replaceChildren();
  page.steps.forEach((one, place) => {
    const isCurrent = place === page.current;
    const tile = add(add(tiles, "li"), "button", "tile");
    tile.type = "button";
    tile.tabIndex = isCurrent ? 0 : -1;
    tile.dataset.place = place;
    if (isCurrent) {
      tile.setAttribute("aria-current", "step");
    }
    add(tile, "span", "unseen", describeStep(one, place));
    add(tile, "span", "token", show(one.token)).ariaHidden = "true";
    add(tile, "span", "probability").style.setProperty("--p", one.probabilities[one.token].toFixed(4));
    const loss = lossOf(one);
    const matters = loss > SMALLEST_LOSS * page.unit * 3;
    add(tile, "span", "loss", matters ? `−${loss.toFixed(page.unit < 1 ? 2 : 1)}` : "").ariaHidden = "true";
    tile.classList.toggle("lossy", matters);
    if (isCurrent && hadFocus) {
      tile.focus();
    }
  });
}

function listCandidates(one) {
  const order = Array.from(one.probabilities.keys());
  const by = (numbers) => [...order].sort((a, b) => numbers[b] - numbers[a]).slice(0, NUM_CANDIDATES);
  const found = new Set([one.token, ...by(one.probabilities), ...(one.values === null ? [] : by(one.values))]);
  const rank = one.values ?? one.probabilities;
  return [...found].sort((a, b) => rank[b] - rank[a]);
}

function drawBar(cell, share, className) {
  const bar = add(cell, "span", `bar ${className}`);
  bar.setAttribute("aria-hidden", "true");
  bar.style.setProperty("--share", Math.min(1, Math.abs(share)).toFixed(4));
  bar.classList.toggle("below", share < 0);
}

function drawCandidates() {
  const one = page.steps[page.current];
  const body = find("candidates");
  const focused = document.activeElement;
  const kept = body.contains(focused) ? focused.dataset.token : undefined;
  body.replaceChildren();
  const listed = listCandidates(one);
  const mean = one.values === null ? 0 : meanValue(one);
  const scale = one.values === null ? 1 : Math.max(page.unit, ...listed.map((token) => Math.abs(one.values[token] - mean)));
  for (const token of listed) {
    const row = add(body, "tr", token === one.token ? "chosen" : "");
    const actor = add(row, "td", "actor");
    add(actor, "span", "amount", percent(one.probabilities[token]));
    drawBar(actor, one.probabilities[token], "likely");
    const button = add(add(row, "th", "taken"), "button", "", show(token));
    button.parentElement.scope = "row";
    button.type = "button";
    button.dataset.token = token;
    button.setAttribute("aria-pressed", token === one.token);
    button.setAttribute("aria-label", `Take ${spell(token)}`);
    if (one.values !== null) {
      const advantage = one.values[token] - mean;
      const critic = add(row, "td", "critic");
      drawBar(critic, advantage / scale, "worth");
      add(critic, "span", "amount", plain(one.values[token]));
      const push = (one.probabilities[token] * advantage) / page.unit;
      const direction = push > 0.005 ? "up" : push < -0.005 ? "down" : "level";
      const signs = { up: "▲", down: "▼", level: "·" };
      const cell = add(row, "td", `push ${direction}`);
      add(cell, "span", "", direction === "level" ? "·" : `${signs[direction]} ${Math.abs(push).toFixed(2)}`);
      add(cell, "span", "unseen", direction === "level" ? " hardly moved" : ` moved ${direction}`);
    }
    if (kept !== undefined && Number(kept) === token) {
      button.focus();
    }
  }
}

// What a value of one means, where that can be said.
function rewardUnit() {
  return model.score === null || model.score.normalise ? "" : codec.isSpelled ? " characters" : " tokens";
}

function sayPlace() {
  const one = page.steps[page.current];
  const written = codec.write(page.tokens.slice(0, page.current));
  const after = page.current === 0 ? "At the beginning" : `After “${written.length > 40 ? `…${written.slice(-40)}` : written}”`;
  const first = likeliest(one.probabilities);
  const sentences = [`${after} the actor would write ${spell(first)} (${percent(one.probabilities[first])}).`];
  if (one.values !== null) {
    const best = likeliest(one.values);
    const gain = one.values[best] - one.values[first];
    sentences.push(
      best === first || gain < SMALLEST_LOSS * page.unit
        ? "The critic agrees."
        : `The critic, who knows the answer, prefers ${spell(best)}: worth ${plain(gain)}${rewardUnit()} more.`,
    );
    if (one.token !== first && one.token !== best) {
      sentences.push(`Written is ${spell(one.token)}, ${plain(lossOf(one))} below the best.`);
    }
  }
  find("saying").textContent = sentences.join(" ");
  find("place-heading").textContent = `Place ${page.current + 1} of ${page.steps.length}`;
}

function sayOutcome() {
  const one = page.steps[page.current];
  const parts = [];
  if (one.reward !== null) {
    const score = page.steps.reduce((sum, each) => sum + each.reward, 0);
    const perfect = page.reference.length - 1;
    parts.push(
      model.score.normalise ? `This text scores ${plain(score)} of 1.` : `This text scores ${plain(score, 0)} of ${perfect}.`,
    );
    if (one.values !== null) {
      const collected = page.steps.slice(0, page.current).reduce((sum, each) => sum + each.reward, 0);
      const digits = model.score.normalise ? 2 : 1;
      parts.push(
        `Before place ${page.current + 1} it had earned ${plain(collected, model.score.normalise ? 2 : 0)}, and the critic ` +
          `forecast ${plain(collected + one.values[one.token], digits)} in the end.`,
      );
    }
  }
  const longest = Math.max(page.source.length, page.reference.length) - 1;
  if (model.longest !== null && longest > model.longest) {
    parts.push(`The networks were trained on at most ${model.longest} at a time; this is ${longest}.`);
  }
  find("outcome").textContent = parts.join(" ");
}

function addShape(parent, name, attributes) {
  const shape = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) {
    shape.setAttribute(key, value);
  }
  parent.append(shape);
}

// The forecast of the final score, rewards so far included; the last point is the score itself.
function drawForecast() {
  const drawing = find("forecast");
  if (drawing === null) {
    return;
  }
  drawing.replaceChildren();
  const [width, height, margin] = [720, 100, 14];
  const perfect = model.score.normalise ? 1 : Math.max(1, page.reference.length - 1);
  let collected = 0;
  const forecasts = page.steps.map((one) => {
    const forecast = collected + one.values[one.token];
    collected += one.reward;
    return forecast;
  });
  const points = [...forecasts, collected];
  const high = Math.max(perfect, ...points);
  // At least a fifth of the scale is shown, so that noise does not look like a fall.
  const low = Math.min(high - perfect / 5, ...points);
  const column = width / points.length;
  const across = (place) => ((place + 0.5) * column).toFixed(1);
  const at = (number) => margin + ((high - number) / (high - low)) * (height - 2 * margin);
  const here = page.current * column;
  addShape(drawing, "rect", { class: "here", x: here, y: 0, width: column, height });
  addShape(drawing, "line", { class: "perfect", x1: 0, x2: width, y1: at(perfect), y2: at(perfect) });
  const line = points.map((point, place) => `${across(place)},${at(point).toFixed(1)}`).join(" ");
  addShape(drawing, "polyline", { class: "line", points: line });
  const digits = model.score.normalise ? 2 : 0;
  find("forecast-top").style.top = `${at(perfect)}%`;
  find("forecast-top").textContent = `a perfect text: ${plain(perfect, digits)}`;
  find("forecast-end").textContent = `this one: ${plain(collected, digits)}`;
}

function drawPlace() {
  const one = page.steps[page.current];
  drawStrip("source-strip", page.source, codec.sourceToken, one.sourceAttention);
  drawStrip("reference-strip", page.reference, codec.targetToken, one.referenceAttention);
  drawTiles();
  sayPlace();
  drawCandidates();
  sayOutcome();
  drawForecast();
}

function drawAll() {
  if (document.activeElement !== find("prediction")) {
    find("prediction").value = codec.write(page.tokens.slice(0, -1));
  }
  drawPlace();
}

// --- doing -------------------------------------------------------------------------------------------------------

function rewrite(choose = likeliest) {
  readTexts();
  write([], choose);
  followPrediction();
  goToFault();
  drawAll();
}

function readReference() {
  readTexts();
  followPrediction();
  drawAll();
}

function editPrediction() {
  page.tokens = codec.encodePrediction(find("prediction").value);
  followPrediction();
  drawAll();
}

function take(token) {
  const beginning = [...page.tokens.slice(0, page.current), token];
  const stays = document.querySelector('input[name="rest"]:checked').value === "stay";
  if (token === model.end) {
    page.tokens = beginning;
  } else if (stays) {
    page.tokens = [...beginning, ...page.tokens.slice(page.current + 1)];
  } else {
    write(beginning, likeliest);
  }
  followPrediction();
  drawAll();
}

function moveTo(place) {
  page.current = Math.min(Math.max(place, 0), page.steps.length - 1);
  drawPlace();
}

function moveByKey(event) {
  const places = {
    ArrowLeft: page.current - 1,
    ArrowRight: page.current + 1,
    Home: 0,
    End: page.steps.length - 1,
  };
  if (event.key in places) {
    event.preventDefault();
    moveTo(places[event.key]);
  }
}

function takeExample(source, reference) {
  find("source").value = source;
  find("reference").value = reference;
  rewrite();
}

// The paper's noise: each character is replaced by another one at random, so often as in training.
function addNoise() {
  const { alphabet, other } = model.codec.target;
  const letters = Array.from(alphabet).filter((letter) => letter !== other);
  const noisy = codec.encodeTarget(find("reference").value).map((token) => {
    const drawn = letters[Math.floor(Math.random() * letters.length)];
    return Math.random() < model.noise ? drawn : codec.targetToken(token);
  });
  takeExample(noisy.join(""), find("reference").value);
}

function offerExamples() {
  const offers = find("offers");
  model.examples.forEach(([source, reference], place) => {
    const button = add(offers, "button", "", codec.isSpelled ? reference : `Example ${place + 1}`);
    button.type = "button";
    button.addEventListener("click", () => takeExample(source, reference));
  });
  if (model.noise !== null) {
    const button = add(offers, "button", "noise", "New typing errors");
    button.type = "button";
    button.addEventListener("click", addNoise);
  }
}

function beginPage() {
  offerExamples();
  find("source").addEventListener("input", () => rewrite());
  find("reference").addEventListener("input", readReference);
  find("prediction").addEventListener("input", editPrediction);
  find("prediction").addEventListener("change", drawAll);
  find("write").addEventListener("click", () => rewrite());
  find("draw").addEventListener("click", () => rewrite(draw));
  find("copy").addEventListener("click", () => {
    page.tokens = page.reference.slice(0, -1);
    followPrediction();
    drawAll();
  });
  find("tiles").addEventListener("keydown", moveByKey);
  find("tiles").addEventListener("click", (event) => {
    const tile = event.target.closest("[data-place]");
    if (tile !== null) {
      moveTo(Number(tile.dataset.place));
    }
  });
  find("candidates").addEventListener("click", (event) => {
    const button = event.target.closest("[data-token]");
    if (button !== null) {
      take(Number(button.dataset.token));
    }
  });
  const [source, reference] = model.examples[0] ?? ["", ""];
  takeExample(source, reference);
  document.documentElement.dataset.ready = "true";
}

beginPage();
