// Text to tokens and back, as the codecs of the package do it.

// What Python's str.split takes for white space.
const SPACE = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+";
const SPACES = new RegExp(SPACE, "u");
const AT_ENDS = new RegExp(`^${SPACE}|${SPACE}$`, "gu");
const UNKNOWN_TEXT = "<unk>";

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

// Characters of a small alphabet; all others are one of them.
function spellingCodec({ alphabet, other }) {
  const numbers = new Map(Array.from(alphabet, (character, place) => [character, place + 1]));
  const inAlphabet = (character) =>
    numbers.has(character) ? character : SPACES.test(character) ? " " : other;
  const encodeText = (text) => {
    const brought = Array.from(text.toLowerCase(), inAlphabet).join("");
    return Array.from(splitAtSpaces(brought).join(" "), (character) => numbers.get(character));
  };
  const characters = ["", ...alphabet];
  return {
    isSpelled: true,
    encodeSource: encodeText,
    encodeTarget: encodeText,
    sourceToken: (number) => characters[number],
    targetToken: (number) => characters[number],
    // Spaces at the ends and between others are characters that a prediction may have.
    encodePrediction: (text) => Array.from(text.toLowerCase(), (character) => numbers.get(inAlphabet(character))),
    write: (tokens) => tokens.map((number) => characters[number]).join(""),
  };
}

const SPLITS = {
  words: splitWords,
  whitespace: splitAtSpaces,
  characters: (text) => Array.from(text.replace(AT_ENDS, "")),
};

function wordSide({ kind, lowercase, words }) {
  const texts = ["", UNKNOWN_TEXT, ...words];
  const numbers = new Map(words.map((word, place) => [word, place + 2]));
  const numberOf = (word) => numbers.get(word) ?? 1;
  const encodeText = (text) => {
    const cased = lowercase ? text.toLowerCase() : text;
    return SPLITS[kind](cased.replaceAll("⁇", "??").replaceAll("⁈", "?!")).map(numberOf);
  };
  return { texts, encodeText, numberOf };
}

function wordCodec({ source, target }) {
  const [from, to] = [wordSide(source), wordSide(target)];
  const common = {
    encodeSource: from.encodeText,
    encodeTarget: to.encodeText,
    sourceToken: (number) => from.texts[number],
    targetToken: (number) => to.texts[number],
  };
  if (target.kind === "characters") {
    return {
      ...common,
      isSpelled: source.kind === "characters",
      encodePrediction: (text) => Array.from(text, to.numberOf),
      write: (tokens) => tokens.map((number) => (number === 1 ? "⁇" : to.texts[number])).join(""),
    };
  }
  return {
    ...common,
    isSpelled: false,
    encodePrediction: (text) =>
      splitAtSpaces(text).flatMap((piece) => (piece === UNKNOWN_TEXT ? [1] : to.encodeText(piece))),
    write: (tokens) => tokens.map((number) => to.texts[number]).join(" "),
  };
}

function openCodec(codec) {
  return codec.kind === "spelling" ? spellingCodec(codec) : wordCodec(codec);
}
