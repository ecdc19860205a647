const history = "http://127.0.0.1:8080/v1/customers/123/trades";
const MINUTE = 60_000;
let candles = [];
let live;

async function start() {
  live?.close();
  const minute = Math.floor(Date.now() / MINUTE) * MINUTE;
  const [from, to] = [minute - 59 * MINUTE, minute + MINUTE].map((end) => new Date(end).toISOString());
  const answer = await fetch(`${history}/summary?by=1m&fill=previous&from=${from}&to=${to}`);
  if (!answer.ok) return setTimeout(start, 1000 * (answer.headers.get("retry-after") ?? 5));
  const { points, totalItems } = await answer.json();
  // Prices are decimals, as strings: exact in the history, and near enough in a drawing.
  candles = points.map(({ start, count, values: { price } }) => {
    const [open, high, low, close] = [price.open, price.high, price.low, price.close].map(Number);
    return { start: Date.parse(start), count, open, high, low, close };
  });
  draw();
  live = new EventSource(`${history}/live?after=${totalItems}`);
  live.onmessage = ({ data }) => JSON.parse(data).items.forEach(add);
  for (const event of ["end", "gone"]) live.addEventListener(event, start);
  live.onerror = () => live.readyState === EventSource.CLOSED && setTimeout(start, 5000);
}

function add({ date, price }) {
  const last = candles.at(-1);
  if (price === undefined) return;
  if (Math.floor(Date.parse(date) / MINUTE) * MINUTE !== last.start) return again();
  const number = Number(price);
  // An empty one has the close before it.
  if (last.count++ === 0) last.open = last.high = last.low = number;
  Object.assign(last, { high: Math.max(last.high, number), low: Math.min(last.low, number), close: number });
  draw();
}

// Once, however many trades ask for it.
let waiting;
function again() {
  waiting ??= setTimeout(() => ((waiting = undefined), start()), 200);
}

function draw() {
  const canvas = document.getElementById("chart");
  const context = canvas.getContext("2d");
  const drawn = candles.filter(({ close }) => !Number.isNaN(close));
  const [least, most] = [Math.min(...drawn.map(({ low }) => low)), Math.max(...drawn.map(({ high }) => high))];
  const width = canvas.width / candles.length;
  const y = (price) => (most === least ? canvas.height / 2 : (canvas.height * (most - price)) / (most - least));
  context.clearRect(0, 0, canvas.width, canvas.height);
  candles.forEach(({ open, high, low, close }, place) => {
    if (Number.isNaN(close)) return;
    context.fillStyle = close < open ? "firebrick" : "seagreen";
    context.fillRect((place + 0.5) * width, y(high), 1, Math.max(1, y(low) - y(high)));
    context.fillRect((place + 0.1) * width, y(Math.max(open, close)), 0.8 * width, Math.max(1, Math.abs(y(open) - y(close))));
  });
}

// The next minute.
setInterval(() => Date.now() >= candles.at(-1)?.start + MINUTE && again(), 1000);
start();
