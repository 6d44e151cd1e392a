// The page of an evaluation: the confusion matrix and the worst examples.
'use strict';

// Right and wrong differ in colour, shares of a class's examples in its strength.
function matrixCell(count, of, right) {
  if (count === 0) return el('td', {});
  const cell = el('td', {}, String(count)), strength = (12 + 63 * Math.sqrt(count / of)).toFixed(0);
  cell.style.background = `color-mix(in srgb, var(${right ? '--c2' : '--c1'}) ${strength}%, transparent)`;
  return cell;
}

function matrixOf(classes, matrix) {
  const head = ['label \\ prediction', ...classes, 'recall'].map((text) => el('th', {scope: 'col'}, text));
  const body = matrix.map((row, label) => {
    const of = row.reduce((sum, count) => sum + count, 0);
    const recall = of > 0 ? `${(100 * row[label] / of).toFixed(0)}%` : '';
    const cells = row.map((count, c) => matrixCell(count, of, c === label));
    return el('tr', {}, el('th', {scope: 'row'}, classes[label]), cells, el('td', {}, recall));
  });
  return el('div', {class: 'scroll'}, el('table', {class: 'matrix'}, el('thead', {}, el('tr', {}, head)), el('tbody', {}, body)));
}

if (page && page.kind === 'evaluation') {
  const pairs = page.confusions.map((row) => row.map(String));
  const worst = page.worst.map(([name, label, prediction, loss]) =>
    [name, label, prediction, textOf(loss, fourDecimals) ?? 'nan']);
  show(
    el('h1', {}, page.title),
    cards(page.figures),
    section('Confusion matrix', page.matrix ? matrixOf(page.classes, page.matrix) : null),
    section('Most frequent confusions',
      pairs.length > 0 ? table(['label', 'taken for', 'examples', 'of'], pairs) : paragraph('None.')),
    section('Examples with the highest loss', table(['example', 'label', 'prediction', 'cross-entropy'], worst)));
}
