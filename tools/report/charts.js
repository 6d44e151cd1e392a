// Charts by Chart.js: curves, and shares of time stacked.
'use strict';

const DASHES = [[], [7, 4], [2, 4], [9, 3, 2, 3], [12, 3]];  // a colour is not all that tells curves apart
const MAX_DOTS = 40;  // points of a curve that has dots
const DECIMATED_FROM = 1000;  // points
const charts = [];

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Draws all charts anew in the colours of the page as it is now: light, dark or printed.
function recolour() {
  Chart.defaults.color = colour('--ink');
  Chart.defaults.borderColor = colour('--rule');
  for (const chart of charts) chart.update('none');
}

function setPrinted(printed) {
  document.documentElement.classList.toggle('printed', printed);
  for (const chart of charts) printed ? chart.resize(420, 250) : chart.resize();
  recolour();
}

Object.assign(Chart.defaults, {animation: false, maintainAspectRatio: false, parsing: false, locale: 'en',
  devicePixelRatio: Math.max(2, window.devicePixelRatio)});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', recolour);
addEventListener('beforeprint', () => setPrinted(true));
addEventListener('afterprint', () => setPrinted(false));
recolour();

// Returns a figure with a chart, whose description is read aloud.
function figureOf(caption, description, datasets, scales, plugins) {
  const canvas = el('canvas', {role: 'img', 'aria-label': `${caption}: ${description}`});
  const figure = el('figure', {}, el('figcaption', {}, caption), el('div', {class: 'plot'}, canvas));
  const legend = {position: 'bottom', labels: {boxWidth: 30, boxHeight: datasets[0].fill ? 10 : 0}};  // without height: a line
  charts.push(new Chart(canvas, {
    type: 'line',
    data: {datasets},
    options: {interaction: {mode: 'nearest', axis: 'x', intersect: false}, scales, plugins: {legend, ...plugins}},
  }));
  return figure;
}

const TICKS = {maxTicksLimit: 7, includeBounds: false};

function axis(title, options) {
  return {type: 'linear', title: {display: true, text: title}, ticks: TICKS, ...options};
}

// Returns an axis for these values: logarithmic where they span two powers of ten and none is 0, with room around a single one.
function axisFor(title, values, zero) {
  const lowest = Math.min(...values), highest = Math.max(...values);
  if (zero) return axis(title, {beginAtZero: true});
  if (lowest > 0 && highest >= 100 * lowest) return axis(`${title} (log)`, {type: 'logarithmic'});
  if (lowest < highest) return axis(title, {});
  return axis(title, {min: lowest - 0.1 * Math.abs(lowest), max: highest + 0.1 * Math.abs(highest || 1)});
}

// Returns a figure with the curves that have points; null if none has. Points ascend in x; a line breaks where y is NaN.
//   curves: [{name, points: [{x, y}]}]; x, y: titles of the axes; options: whole (x are whole numbers), end (of
//   the axis of x, which then begins at 0), zero (that of y begins at 0)
function curvesFigure(caption, x, y, curves, {whole = false, end = undefined, zero = false} = {}) {
  const sound = (curve) => curve.points.filter((point) => !Number.isNaN(point.y));
  const shown = curves.filter((curve) => sound(curve).length > 0);
  if (shown.length === 0) return null;
  const points = shown.flatMap(sound);
  const places = points.map((point) => point.x), first = Math.min(...places), last = Math.max(...places);
  const labels = shown.map((curve) => `${curve.name} ${shortNumber(sound(curve).at(-1).y)}`);
  const datasets = shown.map((curve, i) => ({
    label: labels[i], data: curve.points, borderDash: DASHES[i], borderWidth: 2, tension: 0,
    borderColor: () => colour(`--c${i}`), backgroundColor: () => colour(`--c${i}`),
    pointRadius: curve.points.length <= MAX_DOTS ? 2.5 : 0, clip: 5,
  }));
  const scales = {
    x: axis(x, whole ? {min: first, max: Math.max(last, first + 1), ticks: {...TICKS, precision: 0}} : {min: 0, max: end}),
    y: axisFor(y, points.map((point) => point.y), zero),
  };
  const tooltip = {callbacks: {
    title: (items) => `${x} ${plainNumber(items[0].parsed.x)}`,
    label: (item) => `${shown[item.datasetIndex].name}: ${plainNumber(item.parsed.y)}`,
  }};
  const unbroken = points.length === shown.flatMap((curve) => curve.points).length;
  const decimation = {enabled: unbroken, algorithm: 'min-max', threshold: DECIMATED_FROM};
  return figureOf(caption, labels.join(', '), datasets, scales, {tooltip, decimation});
}

// Returns a figure with shares of time in percent, stacked; nothing is drawn where nothing was sampled.
//   names: of the shares, from the bottom up; samples: [{begin, end, shares}] in seconds, in order
function sharesFigure(caption, x, y, names, samples) {
  const sum = (value) => samples.reduce((total, sample) => total + (sample.end - sample.begin) * value(sample), 0);
  const seconds = sum(() => 1) || 1, means = names.map((_, k) => sum((sample) => sample.shares[k]) / seconds);
  const labels = names.map((name, k) => `${name} ${percent(means[k])}`);
  const datasets = names.map((_, k) => ({
    label: labels[k], data: [], fill: k === 0 ? 'origin' : '-1', pointRadius: 0, borderWidth: 1,
    borderColor: () => colour(`--c${k}`), backgroundColor: () => colour(`--c${k}`),
  }));
  samples.forEach((sample, i) => {
    const gap = i > 0 && sample.begin > samples[i - 1].end;
    let above = 0;
    datasets.forEach(({data}, k) => {
      above = Math.min(100, above + 100 * sample.shares[k]);
      if (gap) data.push({x: sample.begin, y: NaN});
      data.push({x: sample.begin, y: above, sample}, {x: sample.end, y: above, sample});
    });
  });
  const scales = {x: axis(x, {min: 0, max: samples.at(-1).end}), y: axis(y, {min: 0, suggestedMax: 5})};
  const tooltip = {callbacks: {
    title: ([{raw: {sample}}]) => `${duration(sample.begin)} to ${duration(sample.end)}`,
    label: (item) => `${names[item.datasetIndex]}: ${percent(item.raw.sample.shares[item.datasetIndex])}`,
  }};
  return figureOf(caption, labels.join(', '), datasets, scales, {tooltip});
}
