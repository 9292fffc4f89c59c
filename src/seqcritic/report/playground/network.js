// Actor and critic as Python has them: the equations of models/gru, one example at a time. Weights are single precision,
// sums are double, so that the two agree up to Python's own rounding.
//
// A tensor is { numbers, shape }, a vector is an array of numbers. S source tokens, T steps, V vocabulary.

// 16 bits of a number: sign, five of the exponent, ten of the fraction.
function readHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  // Subnormal numbers, and 0, have no leading 1.
  if (exponent === 0) {
    return sign * fraction * 2 ** -24;
  }
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function readWeights(text, precision) {
  const bytes = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  if (precision === "float32") {
    return new Float32Array(bytes.buffer);
  }
  return Float32Array.from(new Uint16Array(bytes.buffer), readHalf);
}

function readTensors(places, weights) {
  const tensors = {};
  for (const [name, [first, shape]] of Object.entries(places)) {
    const size = shape.reduce((product, length) => product * length, 1);
    // A view, not a copy: tensors that two parts share are stored once.
    tensors[name] = { numbers: weights.subarray(first, first + size), shape };
  }
  return tensors;
}

// W x + b, or W x where there is no bias.
function multiply(matrix, vector, bias) {
  const { numbers, shape } = matrix;
  const [rows, columns] = shape;
  const result = new Float64Array(rows);
  for (let row = 0; row < rows; row += 1) {
    let sum = bias === undefined ? 0 : bias.numbers[row];
    const first = row * columns;
    for (let column = 0; column < columns; column += 1) {
      sum += numbers[first + column] * vector[column];
    }
    result[row] = sum;
  }
  return result;
}

function addTo(vector, other) {
  for (let place = 0; place < vector.length; place += 1) {
    vector[place] += other[place];
  }
  return vector;
}

function rowOf(matrix, index) {
  const width = matrix.shape[1];
  return matrix.numbers.subarray(index * width, (index + 1) * width);
}

function softmax(energies) {
  // Taken off so that no exponential overflows; reduce, since too many numbers do not fit into one call of Math.max.
  const largest = energies.reduce((most, energy) => Math.max(most, energy), -Infinity);
  const powers = energies.map((energy) => Math.exp(energy - largest));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}

const logistic = (number) => 1 / (1 + Math.exp(-number));

// r, z = σ(x + h),   n = tanh(x + r h),   s' = n + z (s − n); x the inputs' share of the gates, h the state's.
function passGates(inputs, gates, hidden) {
  const size = hidden.length;
  return Float64Array.from(hidden, (before, unit) => {
    const reset = logistic(inputs[unit] + gates[unit]);
    const update = logistic(inputs[size + unit] + gates[size + unit]);
    const candidate = Math.tanh(inputs[2 * size + unit] + reset * gates[2 * size + unit]);
    return candidate + update * (before - candidate);
  });
}

// The states of one direction of the encoder, in the order of the tokens.
function readOneWay(tensors, embedded, suffix) {
  const named = (name) => tensors[`encoder.recurrent.${name}_l0${suffix}`];
  const order = embedded.map((_, place) => place);
  if (suffix) {
    order.reverse();
  }
  let hidden = new Float64Array(named("weight_hh").shape[1]);
  const states = [];
  for (const place of order) {
    const inputs = multiply(named("weight_ih"), embedded[place], named("bias_ih"));
    hidden = passGates(inputs, multiply(named("weight_hh"), hidden, named("bias_hh")), hidden);
    states[place] = hidden;
  }
  return states;
}

const WINDOW = 5;

// The mean over a window of word plus position embedding; at the edges over the tokens that exist.
function readByWindow(tensors, embedded) {
  const positions = tensors["encoder.position.weight"];
  const last = positions.shape[0] - 1;
  const placed = embedded.map((vector, place) =>
    addTo(Float64Array.from(vector), rowOf(positions, Math.min(place, last))),
  );
  const reach = Math.floor(WINDOW / 2);
  return placed.map((_, place) => {
    const window = placed.slice(Math.max(0, place - reach), place + reach + 1);
    const sum = window.reduce((total, vector) => addTo(total, vector), new Float64Array(placed[0].length));
    return sum.map((number) => number / window.length);
  });
}

// The annotations of tokens, and the keys U h + b by which attention finds them.
function encode(network, tokens) {
  const { tensors } = network;
  const embedded = tokens.map((token) => rowOf(tensors["encoder.embedding.weight"], token));
  let annotations;
  if (network.encoder === "window") {
    annotations = readByWindow(tensors, embedded);
  } else {
    const forward = readOneWay(tensors, embedded, "");
    const backward = readOneWay(tensors, embedded, "_reverse");
    annotations = forward.map((state, place) => Float64Array.of(...state, ...backward[place]));
  }
  const keys = annotations.map((annotation) =>
    multiply(tensors["decoder.attention.key.weight"], annotation, tensors["decoder.attention.key.bias"]),
  );
  return { annotations, keys };
}

// α = softmax(v · tanh(W s + U h + b)),   c = Σ α h
function attend(network, memory, hidden) {
  const query = multiply(network.tensors["decoder.attention.query.weight"], hidden);
  const energy = network.tensors["decoder.attention.energy.weight"].numbers;
  const weights = softmax(
    memory.keys.map((key) => key.reduce((sum, number, unit) => sum + energy[unit] * Math.tanh(number + query[unit]), 0)),
  );
  const context = new Float64Array(memory.annotations[0].length);
  memory.annotations.forEach((annotation, place) => addTo(context, annotation.map((number) => number * weights[place])));
  return { hidden, context, weights };
}

function start(network, memory) {
  return attend(network, memory, Float64Array.from(network.tensors["decoder.initial"].numbers));
}

// The state after a token and, for a critic that reads them, the actor's state after it.
function step(network, memory, state, token, actorState) {
  const { tensors } = network;
  const embedded = rowOf(tensors["decoder.embedding.weight"], token);
  const inputs = multiply(tensors["decoder.token_gates.weight"], embedded, tensors["decoder.token_gates.bias"]);
  addTo(inputs, multiply(tensors["decoder.context_gates.weight"], state.context));
  if (network.readsActorStates) {
    addTo(inputs, multiply(tensors["decoder.extra_gates.weight"], actorState));
  }
  const gates = multiply(tensors["decoder.state_gates.weight"], state.hidden, tensors["decoder.state_gates.bias"]);
  return attend(network, memory, passGates(inputs, gates, state.hidden));
}

// What the matrix of the vocabulary is multiplied with.
function outputInputs(network, state) {
  const features = Float64Array.of(...state.hidden, ...state.context);
  const projection = network.tensors["decoder.output_layer.projection.weight"];
  if (projection === undefined) {
    return features;
  }
  const projected = multiply(projection, features, network.tensors["decoder.output_layer.projection.bias"]);
  return network.tied ? projected : projected.map(Math.tanh);
}

function outputs(network, state) {
  const matrix = network.tensors[network.tied ? "decoder.embedding.weight" : "decoder.output_layer.weight"];
  return multiply(matrix, outputInputs(network, state), network.tensors["decoder.output_layer.bias"]);
}

// The value that all tokens without a column of their own share.
function valueOfRest(network, state) {
  return multiply(network.tensors["rest.weight"], outputInputs(network, state), network.tensors["rest.bias"])[0];
}

// Everything that is known before each token of a sequence: probabilities, values, states, attention.
function followActor(network, source, tokens) {
  const memory = encode(network, source);
  const steps = [];
  let state = start(network, memory);
  tokens.forEach((token, place) => {
    steps.push({ probabilities: softmax(outputs(network, state)), state: state.hidden, attention: state.weights });
    if (place + 1 < tokens.length) {
      state = step(network, memory, state, token);
    }
  });
  return steps;
}

function followCritic(network, reference, tokens, actorStates) {
  const memory = encode(network, reference);
  const steps = [];
  let state = start(network, memory);
  tokens.forEach((token, place) => {
    const rest = network.columns === null ? null : valueOfRest(network, state);
    steps.push({ values: outputs(network, state), rest, attention: state.weights });
    if (place + 1 < tokens.length) {
      // The actor's state after this token is the one before the next.
      state = step(network, memory, state, token, actorStates[place + 1]);
    }
  });
  return steps;
}

// Tokens after a given beginning, the end token last unless the limit cut them; `choose` picks from probabilities.
function goOn(network, source, beginning, end, limit, choose) {
  const memory = encode(network, source);
  const tokens = [...beginning];
  let state = start(network, memory);
  for (const token of beginning) {
    state = step(network, memory, state, token);
  }
  while (tokens.length < limit) {
    const token = choose(softmax(outputs(network, state)));
    tokens.push(token);
    if (token === end) {
      break;
    }
    state = step(network, memory, state, token);
  }
  return tokens;
}

function likeliest(numbers) {
  return numbers.reduce((best, number, index) => (number > numbers[best] ? index : best), 0);
}

function draw(probabilities) {
  let left = Math.random();
  const drawn = probabilities.findIndex((probability) => {
    left -= probability;
    return left < 0;
  });
  // Rounding may leave a little of the 1 behind all of them.
  return drawn < 0 ? likeliest(probabilities) : drawn;
}
