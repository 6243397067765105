// The compressed pieces of the page. An episode is unpacked when it is opened, with its neighbours
// in the same piece; the last few pieces are kept.
const KEPT_PIECES = 4;
const pieces = new Map();

const unpack = async (id) => {
  const packed = atob(document.getElementById(id).textContent);
  const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(plain).text());
};

const piece = (number) => {
  const found = pieces.get(number) || unpack(`chunk-${number}`);
  pieces.delete(number);
  pieces.set(number, found);
  if (pieces.size > KEPT_PIECES) pieces.delete(pieces.keys().next().value);
  return found;
};

const readIndex = async () => {
  const places = new Map();
  return (await unpack("index")).map(([task, seed, policy, set, outcome, goal, steps, file, at, chunk], number) => {
    const place = places.get(chunk) || 0;
    places.set(chunk, place + 1);
    const words = [goal, task, policy, set, `seed ${seed}`].join("\n").toLowerCase();
    return { number, task, seed, policy, set, outcome, goal, steps, file, at, chunk, place, words };
  });
};

const readEpisode = async (entry) => (await piece(entry.chunk))[entry.place];

const pictureSource = (number) => {
  const data = document.getElementById(`picture-${number}`).textContent;
  return `data:image/png;base64,${data}`;
};
