// Text to tokens and back, as the codecs of the package do it.

// What Python's str.split takes for white space.
const SPACE = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+";
const SPACES = new RegExp(SPACE, "u");
const AT_ENDS = new RegExp(`^${SPACE}|${SPACE}$`, "gu");
const UNKNOWN = 1;
const UNKNOWN_TEXT = "<unk>";
const UNKNOWN_WORD = "⁇";

function splitAtSpaces(text) {
  return text.split(SPACES).filter((piece) => piece !== "");
}

// The rules of data/words.py. A mark belongs to the letter before it.
const MARKS = "\\p{Mn}\\p{Mc}\\p{Me}\\p{Cf}";
const LETTER = `[\\p{L}\\p{N}_${MARKS}⁇]`;
const APOSTROPHE = "['’]";
const ENDING = `${APOSTROPHE}(?:[sS]|[tT]|[mM]|[dD]|[rR][eE]|[vV][eE]|[lL][lL])(?!${LETTER})`;
const WORD = new RegExp(
  `(?:https?:\\/\\/|www\\.)\\S*[\\p{L}\\p{N}_/]` +
    `|(?<=${LETTER})${ENDING}` +
    `|(?:(?<!\\S)[\\-+−](?=\\p{Nd}))?${LETTER}+(?:(?:[\\-–.@&]|(?<=\\p{Nd})[,:](?=\\p{Nd}))${LETTER}+)*` +
    `(?:(?!${ENDING})${APOSTROPHE}(?=${LETTER})|-(?!-|${LETTER}))?` +
    `|\\.+|-+|!+|\\?+|[^\\p{L}\\p{N}_\\s${MARKS}⁇][${MARKS}]*`,
  "gu",
);

function splitWords(text) {
  return splitAtSpaces(text).flatMap((piece) => piece.match(WORD) ?? []);
}

// A side of a codec: encode(text) of a raw line, show(id) of one token, write(ids) as text that can be edited, and
// read(text) of such a text, in which spaces at the ends may be tokens.

// Characters of a small alphabet; all others are one of them.
function spellingSide({ alphabet, other }) {
  const characters = ["", ...alphabet];
  const numbers = new Map(characters.map((character, number) => [character, number]));
  const inAlphabet = (character) => (numbers.has(character) ? character : SPACES.test(character) ? " " : other);
  const read = (text) => Array.from(text.toLowerCase(), (character) => numbers.get(inAlphabet(character)));
  const write = (tokens) => tokens.map((number) => characters[number]).join("");
  return {
    encode: (text) => read(splitAtSpaces(write(read(text))).join(" ")),
    show: (number) => characters[number],
    write,
    read,
  };
}

const SPLITS = {
  words: splitWords,
  whitespace: splitAtSpaces,
  characters: (text) => Array.from(text.replace(AT_ENDS, "")),
};

function withoutReserved(text) {
  return text.replaceAll(UNKNOWN_WORD, "??").replaceAll("⁈", "?!");
}

function wordSide({ kind, lowercase, words }) {
  const texts = ["", UNKNOWN_TEXT, ...words];
  const numbers = new Map(words.map((word, place) => [word, place + 2]));
  const numberOf = (word) => numbers.get(word) ?? UNKNOWN;
  const encode = (text) => SPLITS[kind](withoutReserved(lowercase ? text.toLowerCase() : text)).map(numberOf);
  const show = (number) => texts[number];
  if (kind === "characters") {
    const write = (tokens) => tokens.map((number) => (number === UNKNOWN ? UNKNOWN_WORD : texts[number])).join("");
    return { encode, show, write, read: (text) => Array.from(text, numberOf) };
  }
  return {
    encode,
    show,
    write: (tokens) => tokens.map(show).join(" "),
    read: (text) => splitAtSpaces(text).flatMap((piece) => (piece === UNKNOWN_TEXT ? [UNKNOWN] : encode(piece))),
  };
}

// Byte-pair encoding of bytes, each byte written as a character that can be seen (Radford et al. 2019).
const SEEN = [[33, 126], [161, 172], [174, 255]].flatMap(([first, last]) =>
  Array.from({ length: last - first + 1 }, (_, place) => first + place),
);
const HIDDEN = Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => !SEEN.includes(byte));
const SIGN_OF_BYTE = new Map([
  ...SEEN.map((byte) => [byte, String.fromCharCode(byte)]),
  ...HIDDEN.map((byte, place) => [byte, String.fromCharCode(256 + place)]),
]);
const BYTE_OF_SIGN = new Map([...SIGN_OF_BYTE].map(([byte, sign]) => [sign, byte]));
const PIECES =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

function writeBytes(text) {
  return Array.from(new TextEncoder().encode(text), (byte) => SIGN_OF_BYTE.get(byte));
}

function readBytes(signs) {
  return new TextDecoder().decode(Uint8Array.from(signs, (sign) => BYTE_OF_SIGN.get(sign)));
}

// The pair that was learnt first is merged, everywhere, until no pair is known.
function mergePairs(parts, ranks) {
  for (;;) {
    const pairs = parts.slice(1).map((part, place) => `${parts[place]} ${part}`);
    const best = pairs.reduce((least, pair) => ((ranks.get(pair) ?? Infinity) < (ranks.get(least) ?? Infinity) ? pair : least), "");
    if (!ranks.has(best)) {
      return parts;
    }
    const merged = [];
    for (let place = 0; place < parts.length; place += 1) {
      const joins = pairs[place] === best;
      merged.push(joins ? parts[place] + parts[place + 1] : parts[place]);
      place += joins ? 1 : 0;
    }
    parts = merged;
  }
}

function subwordSide({ lowercase, pieces, merges }) {
  const texts = ["", writeBytes(` ${UNKNOWN_WORD}`).join(""), ...pieces];
  const numbers = new Map(pieces.map((piece, place) => [piece, place + 2]));
  const ranks = new Map(merges.map((pair, rank) => [pair, rank]));
  const encode = (raw) => {
    const text = withoutReserved(lowercase ? raw.toLowerCase() : raw).replace(AT_ENDS, "");
    const found = (text === "" ? "" : ` ${text}`).match(PIECES) ?? [];
    return found.flatMap((piece) => mergePairs(writeBytes(piece), ranks)).map((part) => numbers.get(part));
  };
  const show = (number) => {
    const text = readBytes(Array.from(texts[number]));
    // Part of a character has no text of its own.
    return number === UNKNOWN ? UNKNOWN_TEXT : text.includes("\ufffd") ? texts[number] : text.replaceAll(" ", "▁");
  };
  const write = (tokens) => readBytes(Array.from(tokens.map((number) => texts[number]).join(""))).replace(/^ /, "");
  return { encode, show, write, read: encode };
}

const SIDES = {
  spelling: spellingSide,
  words: wordSide,
  whitespace: wordSide,
  characters: wordSide,
  subwords: subwordSide,
};

function openCodec({ source, target }) {
  const [from, to] = [source, target].map((side) => SIDES[side.kind](side));
  const isSpelled = [source, target].every((side) => ["spelling", "characters"].includes(side.kind));
  return {
    isSpelled,
    encodeSource: from.encode,
    encodeTarget: to.encode,
    sourceToken: from.show,
    targetToken: to.show,
    encodePrediction: to.read,
    write: to.write,
  };
}
