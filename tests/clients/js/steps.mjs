// What the JavaScript clients share: steps that are told one by one, and a receiver of webhooks.
//
// A client is a list of steps for each transport. A step that is done prints `ok TRANSPORT STEP`; the first that fails
// prints what it saw and ends the program. Every step has a time limit. The variable STEPS names the steps to take; without it
// all are.

import { createServer } from 'node:http';
import { isDeepStrictEqual, inspect } from 'node:util';

const STEP_MS_MAX = 20_000;

/** Runs the steps that `connect(url, transport)` promises, `{name: async function}`, for each transport asked for. */
export async function run(connect) {
  const [url, ...transports] = process.argv.slice(2);
  const wanted = process.env.STEPS?.split(',');
  for (const transport of transports) {
    let name = 'connect';
    try {
      const steps = await limited(connect(url, transport));
      for (const [step, act] of Object.entries(steps)) {
        if (wanted && !wanted.includes(step)) continue;
        name = step;
        await limited(act());
        console.log(`ok ${transport} ${name}`);
      }
    } catch (error) {
      console.log(`FAILED ${transport} ${name}\n${inspect(error, { depth: 8 })}`);
      process.exit(1);
    }
  }
  // Connections kept alive and receivers of webhooks would hold the program open.
  process.exit(0);
}

function limited(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${STEP_MS_MAX} ms`)), STEP_MS_MAX);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** An assertion that tells both sides. */
export function same(saw, expected) {
  if (!isDeepStrictEqual(saw, expected)) {
    throw new Error(`\n  saw      ${inspect(saw, { depth: 8 })}\n  expected ${inspect(expected, { depth: 8 })}`);
  }
}

/** Awaits a call that must be refused, with one of these words or numbers somewhere in what the SDK throws. */
export async function refused(call, ...signs) {
  let answer;
  try {
    answer = await call;
  } catch (error) {
    const said = inspect(error, { depth: 8 });
    if (!signs.some((sign) => said.includes(String(sign)))) {
      throw new Error(`refused, but said ${said}, with none of ${signs}`);
    }
    return;
  }
  throw new Error(`not refused: ${inspect(answer, { depth: 8 })}`);
}

/** What the demo agent streams when asked for so many chunks. */
export function chunks(count) {
  return Array.from({ length: count }, (_, at) => `chunk ${at + 1} of ${count}\n`).join('');
}

/** A receiver of webhooks on a free port of this machine. `until(wanted)` gives the first delivery that is wanted. */
export async function hooks() {
  const seen = [];
  let tell = () => {};
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (piece) => (text += piece));
    request.on('end', () => {
      seen.push({ headers: request.headers, body: JSON.parse(text) });
      tell();
      response.writeHead(204).end();
    });
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  return {
    url: `http://127.0.0.1:${server.address().port}/hook`,
    async until(wanted) {
      const end = Date.now() + STEP_MS_MAX / 2;
      for (;;) {
        const found = seen.find(({ body }) => wanted(body));
        if (found) return found;
        const left = end - Date.now();
        if (left <= 0) throw new Error(`no such delivery; received: ${inspect(seen, { depth: 8 })}`);
        await new Promise((go) => {
          tell = go;
          setTimeout(go, left);
        });
      }
    },
  };
}
