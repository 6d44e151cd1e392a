// The report of a run: curves, saturation, the pipeline, tables.
'use strict';

const MAX_ROWS = 300;
// The figures of an epoch besides metrics.
const OTHER_FIGURES = new Set(['epoch', 'steps', 'planned_steps', 'seconds', 'examples_per_second', 'input_stall_fraction',
  'exposed_copy_fraction', 'device_idle_fraction', 'sync_wait_fraction', 'hidden_sum_fraction', 'host_us_per_step', 'loss',
  'learning_rate', 'gradient_norm', 'bad_records']);
const WAITS = ['input stall', 'copies', 'idle', 'replicas'];

// Returns the names of the metrics, without "val_".
function metricsOf(epochs) {
  const names = epochs.flatMap((line) => Object.keys(line).filter((key) => typeof line[key] === 'number'));
  return [...new Set(names.map((name) => name.replace(/^val_/, '')))].filter((name) => !OTHER_FIGURES.has(name));
}

// A line breaks where a figure is there and is no number; where it was not measured it goes on.
function curveOf(epochs, key, name) {
  const lines = epochs.filter((line) => key in line);
  return {name, points: lines.map((line) => ({x: line.epoch, y: line[key] ?? NaN}))};
}

// Returns the curve of the optimizer's own rate for group 0, then of each of its groups.
function rateOf(epochs, group) {
  const rate = (line) => line.learning_rates?.[group] ?? (group === 0 ? line.learning_rate : undefined);
  const points = epochs.filter((line) => typeof rate(line) === 'number').map((line) => ({x: line.epoch, y: rate(line)}));
  return {name: group === 0 ? 'rate' : `group ${group}`, points};
}

function drawCurves(epochs) {
  const chart = (caption, y, curves, options) => curvesFigure(caption, 'epoch', y, curves, {whole: true, ...options});
  const pair = (name, y) =>
    chart(`${name}, training and validation`, y, [curveOf(epochs, name, 'train'), curveOf(epochs, `val_${name}`, 'val')]);
  return grid([
    pair('loss', 'mean loss'),
    ...metricsOf(epochs).map((name) => pair(name, name)),
    chart('training rate', 'examples/s', [curveOf(epochs, 'examples_per_second', 'rate')], {zero: true}),
    chart('learning rate after the epoch', 'learning rate', [0, 1, 2].map((group) => rateOf(epochs, group))),
    chart('norm of the last step\u2019s gradient', 'norm', [curveOf(epochs, 'gradient_norm', 'norm')]),
  ]);
}

function drawSaturation({timeline, standstill}) {
  if (timeline.length === 0) return [];
  const points = timeline.filter((one) => 'rate' in one).flatMap((one, i, all) => {
    const gap = i > 0 && one.begin > all[i - 1].end;
    return [...(gap ? [{x: one.begin, y: NaN}] : []), {x: (one.begin + one.end) / 2, y: one.rate}];
  });
  const share = standstill && `The devices stood still for ${percent(standstill.still)} of the time; input stall is ` +
    `${percent(standstill.stalled)} of the time.`;
  return [
    paragraph(share),
    paragraph('Input stall: no batch was ready. Copies: the batch was on its way to the device. Idle: the host had not ' +
      'submitted the step. Replicas: waiting to sum gradients. Gaps are validations.'),
    grid([
      sharesFigure('devices standing still: why', 'seconds of training', '% of the devices\u2019 time', WAITS, timeline),
      curvesFigure('training rate over time', 'seconds of training', 'examples/s', [{name: 'rate', points}],
        {zero: true, end: timeline.at(-1).end}),
    ]),
  ];
}

function threadsText(threads) {
  return `${threads.toFixed(0)} ${threads === 1 ? 'thread' : 'threads'}`;
}

function drawStage(stage, limits) {
  const ns = stage.ns_per_item ?? 0, busy = stage.occupancy ?? 0, threads = stage.threads ?? 1;
  const rate = ns > 0 ? shortNumber(threads * 1e9 / ns) : null;
  const items = (stage.items ?? 0).toLocaleString('en');
  const waits = [stage.wait_p50_us, stage.wait_p99_us].map((us) => nanoseconds(1e3 * (us ?? 0)));
  const words = `${stage.name}: ${rate ? `${rate} examples/s alone` : 'nothing to do'}; ${items} examples went through it, ` +
    `${nanoseconds(ns)} each; busy ${percent(busy)}; its threads waited ${waits[0]} at the median, ${waits[1]} at the 99th ` +
    `percentile${limits ? '; this stage limits the training' : ''}`;
  const fill = el('i', {});
  fill.style.width = `${100 * Math.min(1, Math.max(0, busy))}%`;
  return el('div', {class: limits ? 'stage limits' : 'stage', title: words}, el('b', {}, stage.name),
    el('strong', {}, rate ? `${rate}/s` : 'no work', limits ? el('em', {}, 'limits') : null),
    el('div', {}, `${nanoseconds(ns)} an example`),
    el('div', {}, `busy ${percent(busy)}, ${threadsText(threads)}`), el('div', {class: 'bar'}, fill));
}

// Stages that share threads take turns: together they are as fast as the sum of their times allows.
function sharedText(stages, delivered) {
  const busy = stages.reduce((sum, stage) => sum + (stage.items ?? 0) * (stage.ns_per_item ?? 0), 0);
  const threads = stages[0].threads ?? 1;
  const rate = busy > 0 && delivered > 0 ? `: together ${shortNumber(threads * 1e9 * delivered / busy)}/s` : '';
  return `${threadsText(threads)} for these stages${rate}`;
}

// Returns the stages from left to right, those that share threads within a frame.
function drawPipeline({stages, bottleneck, examples}) {
  const computes = (stage) => ['decode', 'operate'].includes(stage.stage_kind);
  const groups = [];
  for (const stage of stages) {
    const last = groups.at(-1);
    if (last && computes(stage) && computes(last[0])) last.push(stage);
    else groups.push([stage]);
  }
  const arrow = () => el('span', {class: 'arrow', 'aria-hidden': 'true'}, '\u2192');
  const row = (parts) => parts.flatMap((part, i) => i > 0 ? [arrow(), part] : [part]);
  return el('div', {class: 'pipeline'}, row(groups.map((group) => {
    const boxes = group.map((stage) => drawStage(stage, stage.name === bottleneck));
    return boxes.length > 1 ? el('div', {class: 'shared'}, paragraph(sharedText(group, examples)), row(boxes)) : boxes[0];
  })));
}

function drawInput(input) {
  if (input.stages.length === 0) return [];
  const what_ifs = input.what_ifs.map((text) => el('li', {}, text));
  return [
    input.verdict ? el('p', {}, el('strong', {}, input.verdict)) : null,
    paragraph('Each box: the rate that the stage could reach if its threads did nothing else, and how much of their time it ' +
      'takes.'),
    drawPipeline(input),
    paragraph(input.summary && `As the engine counts: ${input.summary}.`),
    paragraph(input.summary && 'Consumer wait is not input stall: it is the time that the training\u2019s thread spent asking ' +
      'the engine for batches, which it does ahead of the devices. They stall only where it comes back too late for them.'),
    details('What if', what_ifs.length > 0 ? el('ul', {}, what_ifs) : null),
  ];
}

const SHARE_COLUMNS = [['input_stall_fraction', 'input stall', percent], ['exposed_copy_fraction', 'copies', percent],
  ['device_idle_fraction', 'idle', percent]];

function drawEpochs(epochs) {
  const every = Math.ceil(epochs.length / MAX_ROWS), metrics = metricsOf(epochs);
  const rows = epochs.filter((_, i) => i % every === 0 || i + 1 === epochs.length);
  return [
    paragraph(every > 1 ? `Every ${every}th of ${epochs.length} epochs and the last; history.jsonl has all.` : ''),
    figureTable([
      ['epoch', 'epoch', plainNumber], ['steps', 'steps', plainNumber], ['loss', 'loss', fourDecimals],
      ...metrics.map((name) => [name, name, fourDecimals]), ['val_loss', 'val loss', fourDecimals],
      ...metrics.map((name) => [`val_${name}`, `val ${name}`, fourDecimals]), ['examples_per_second', 'examples/s', shortNumber],
      ...SHARE_COLUMNS, ['seconds', 'time', duration], ['bad_records', 'bad records', plainNumber],
    ], rows),
  ];
}

function drawCards(epochs, end) {
  const last = epochs.at(-1) ?? {}, percents = (value) => `${(100 * value).toFixed(2)} %`;
  const best = epochs.map((line) => line.val_accuracy).filter((value) => typeof value === 'number');
  const timed = epochs.filter((line) => typeof line.input_stall_fraction === 'number' && line.seconds > 0);
  const seconds = timed.reduce((sum, line) => sum + line.seconds, 0);
  const stall = seconds > 0 ? timed.reduce((sum, line) => sum + line.input_stall_fraction * line.seconds, 0) / seconds : null;
  return cards([
    ['test accuracy', textOf(end.test_accuracy, percents)],
    ['test loss', textOf(end.test_loss, fourDecimals)],
    ['best validation accuracy', best.length > 0 ? percents(Math.max(...best)) : null],
    ['training loss at the end', textOf(last.loss, fourDecimals)],
    ['examples/s in the last epoch', textOf(last.examples_per_second, shortNumber)],
    ['input stall', textOf(stall, percent)],
    ['training and test', textOf(end.train_seconds, duration)],
    ['epochs', epochs.length > 0 ? String(epochs.length) : null],
  ]);
}

function drawRun({title, about, reason, notes, ends, epochs, input, facts, others, model, plan}) {
  const trainings = ends.length < 2 ? null : figureTable([['seed', 'seed', String], ['steps', 'steps', plainNumber],
    ['test_loss', 'test loss', fourDecimals], ['test_accuracy', 'test accuracy', fourDecimals],
    ['train_seconds', 'time', duration]], ends);
  const workers = figureTable([['worker', 'worker', plainNumber], ...SHARE_COLUMNS,
    ['sync_wait_fraction', 'waits for others', percent],
    ['hidden_sum_fraction', 'of the sums hidden', percent]], epochs.at(-1)?.workers ?? []);
  const list = facts.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, textOf(value, duration) ?? value)]);
  show(
    el('h1', {}, title),
    paragraph(about.join(' \u00b7 '), {class: 'soft'}),
    reason ? el('p', {}, el('strong', {}, reason)) : null,
    notes.length > 0 ? el('div', {class: 'notes'}, notes.map((note) => paragraph(note))) : null,
    drawCards(epochs, ends.at(-1)),
    section('All trainings of this run', trainings, trainings && paragraph('What follows is of the last one.')),
    section('Curves', drawCurves(epochs)),
    section('Saturation', drawSaturation(page)),
    section('Pipeline', drawInput(input)),
    section('Epochs', drawEpochs(epochs)),
    section('Workers in the last epoch', workers),
    section('The run', el('dl', {}, list), paragraph(others)),
    details('Model', model && el('pre', {}, model)),
    details('Plan of the input', plan && el('pre', {}, plan)));
}

if (page && page.kind === 'run') drawRun(page);
