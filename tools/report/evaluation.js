// The page of an evaluation: the confusion matrix and the worst examples.
'use strict';

// Right and wrong differ in colour, shares of a class's examples in its strength.
function matrixCell(count, of, right) {
  const cell = el('td', {}, count > 0 ? String(count) : '');
  const strength = 12 + 63 * Math.sqrt(count / of);
  if (count > 0) cell.style.background = `color-mix(in srgb, var(${right ? '--c2' : '--c1'}) ${strength.toFixed(0)}%, transparent)`;
  return cell;
}

function matrixOf(classes, matrix) {
  const head = ['label \\ prediction', ...classes, 'recall'].map((text) => el('th', {scope: 'col'}, text));
  const body = matrix.map((row, label) => {
    const of = row.reduce((sum, count) => sum + count, 0);
    const recall = of > 0 ? `${(100 * row[label] / of).toFixed(0)}%` : '';
    return el('tr', {}, el('th', {scope: 'row'}, classes[label]), row.map((count, c) => matrixCell(count, of, c === label)), el('td', {}, recall));
  });
  return el('div', {class: 'scroll'}, el('table', {class: 'matrix'}, el('thead', {}, el('tr', {}, head)), el('tbody', {}, body)));
}

if (page && page.kind === 'evaluation') {
  const texts = (row) => row.map(String);
  show(
    el('h1', {}, page.title),
    cards(page.figures),
    section('Confusion matrix', page.matrix ? matrixOf(page.classes, page.matrix) : null),
    section('Most frequent confusions',
      page.confusions.length > 0 ? table(['label', 'taken for', 'examples', 'of'], page.confusions.map(texts)) : paragraph('None.')),
    section('Examples with the highest loss', table(['example', 'label', 'prediction', 'cross-entropy'],
      page.worst.map(([name, label, prediction, loss]) => [name, label, prediction, loss === null ? 'nan' : fourDecimals(loss)]))));
}
