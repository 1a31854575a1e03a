// Runs an RSP-QL query of rsp-js over a stream in a file; what it took and what it answered, as JSON on stdout.
//
//   node rspjs.mjs FOLDER TASK.json
//
// FOLDER is where rsp-js is installed. TASK has the query's text, the file of its stream (a time in ms, a tab,
// an N-Triples line) and how many runs there are; the last is measured.
//
// In favour of rsp-js: reading the text is not measured, what it prints is thrown away unformatted, and all
// events are pushed before the event loop gets its turn. (rsp-js moves the start of its windows with every
// answer that it hands out; events that come after that make it open more and more windows of the past.)

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [folder, file] = process.argv.slice(2);
const load = createRequire(`${folder}/`);
const task = JSON.parse(readFileSync(file, "utf8"));

const complaints = [];
for (const level of ["debug", "info", "log", "warn"]) console[level] = () => {};
console.error = (...words) => complaints.push(words.join(" "));

const { RSPEngine } = load("rsp-js");
const { Parser } = createRequire(load.resolve("rsp-js"))("n3");

function eventsOf(path) {
  const lines = readFileSync(path, "utf8").split("\n").filter((line) => line);
  const cut = lines.map((line) => line.indexOf("\t"));
  const quads = new Parser({ format: "N-Triples" }).parse(lines.map((line, i) => line.slice(cut[i] + 1)).join("\n"));
  if (quads.length !== lines.length) throw new Error(`${lines.length} lines, but ${quads.length} triples`);
  return quads.map((quad, i) => [Number(lines[i].slice(0, cut[i])), quad]);
}

// The answers of each window that closed, by the instant at which it did.
async function run(text, events) {
  const engine = new RSPEngine(text);
  engine.logger.setLoggableClasses([]); // else it writes a file
  const [window] = engine.windows;
  const closes = new Map();
  window.subscribe("RStream", (content) => {
    for (const [instance, held] of window.active_windows) if (held === content) closes.set(content, instance.close);
  });
  const reports = [];
  const execute = engine.r2r.execute.bind(engine.r2r);
  engine.r2r.execute = async (content) => {
    const found = await execute(content);
    const answers = [];
    found.on("data", (bindings) => answers.push(bindings));
    reports.push(
      new Promise((done, fail) => found.on("error", fail).on("end", () => done([closes.get(content), answers]))),
    );
    return found;
  };
  engine.register();
  const [name] = engine.get_all_streams();
  const stream = engine.getStream(name);
  const before = process.cpuUsage();
  for (const [time, quad] of events) stream.add(quad, time);
  while (reports.length < closes.size) await new Promise(setImmediate);
  const answered = await Promise.all(reports);
  const { user, system } = process.cpuUsage(before);
  return { cpu: (user + system) / 1e6, answered };
}

const termOf = (term) => (term.termType === "Literal" ? [term.value, term.datatype.value] : [term.value]);
const solutionOf = (bindings) => Object.fromEntries([...bindings].map(([name, term]) => [name.value, termOf(term)]));

const events = eventsOf(task.stream);
let last;
for (let i = 0; i < task.runs; i++) last = await run(task.query, events);
if (complaints.length) throw new Error(complaints[0]);
const reports = last.answered.map(([at, answers]) => ({ at, answers: answers.map(solutionOf) }));
process.stdout.write(JSON.stringify({ cpu_s: last.cpu, events: events.length, reports }));
