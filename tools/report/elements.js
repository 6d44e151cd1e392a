// The parts of a page. Text of users goes into text nodes and attributes, never into markup.
'use strict';

const page = JSON.parse(document.getElementById('data').textContent);

// Returns an element with children: elements, or texts; null and '' are left out.
function el(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.flat().filter((child) => child !== null && child !== ''));
  return element;
}

// Each of these returns null if there is nothing to show.
function paragraph(text, attributes = {}) {
  return text ? el('p', attributes, text) : null;
}

function section(title, ...children) {
  const shown = children.flat().filter((child) => child !== null);
  return shown.length > 0 ? el('section', {}, el('h2', {}, title), shown) : null;
}

function details(title, content) {
  return content ? el('details', {}, el('summary', {}, title), content) : null;
}

function grid(figures) {
  const shown = figures.filter((figure) => figure !== null);
  return shown.length > 0 ? el('div', {class: 'charts'}, shown) : null;
}

// figures: [[name, text or null]]
function cards(figures) {
  const shown = figures.filter(([, text]) => text !== null);
  if (shown.length === 0) return null;
  const card = ([name, text]) => el('div', {class: 'card'}, el('b', {}, text), el('span', {}, name));
  return el('div', {class: 'cards'}, shown.map(card));
}

function table(titles, rows) {
  const head = el('tr', {}, titles.map((title) => el('th', {scope: 'col'}, title)));
  const body = rows.map((row) => el('tr', {}, row.map((text) => el('td', {}, text))));
  return el('div', {class: 'scroll'}, el('table', {}, el('thead', {}, head), el('tbody', {}, body)));
}

// Returns a table of objects' figures, without the columns of which no row has one.
//   columns: [[key, title, format]]
function figureTable(columns, rows) {
  const has = (row, key) => row[key] !== undefined && row[key] !== null;
  const shown = columns.filter(([key]) => rows.some((row) => has(row, key)));
  if (shown.length === 0) return null;
  const texts = (row) => shown.map(([key, , format]) => has(row, key) ? format(row[key]) : '');
  return table(shown.map(([, title]) => title), rows.map(texts));
}

// Returns the text of a number; null if there is none.
function textOf(value, format) {
  return typeof value === 'number' ? format(value) : null;
}

function show(...parts) {
  document.title = page.title;
  document.body.append(...parts.filter((part) => part !== null));
}
