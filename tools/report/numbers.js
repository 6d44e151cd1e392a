// Formats numbers for people.
'use strict';

// Returns three significant digits, or all those before the point: "0.0124", "812".
function threeDigits(value) {
  const size = Math.abs(Number(value.toPrecision(3)));
  if (size === 0) return '0';
  if (size < 1e-4 || size >= 1e6) return value.toExponential(2);
  return size < 1000 ? value.toPrecision(3) : value.toFixed(0);
}

// Returns three significant digits, from a thousand on with k, M, G or T: "12.3k".
function shortNumber(value) {
  let unit = 0;
  for (; Math.abs(value) >= 999.5 && unit < 4; ++unit) value /= 1000;
  return threeDigits(value) + ['', 'k', 'M', 'G', 'T'][unit];
}

// Returns at most six significant digits.
function plainNumber(value) {
  return String(Number(value.toPrecision(6)));
}

function fourDecimals(value) {
  return value.toFixed(4);
}

// Returns a share in [0, 1] as "43 %", "1.2 %", "0.03 %".
function percent(share) {
  const value = 100 * share, size = Math.abs(value);
  if (value === 0) return '0 %';
  if (size < 0.01) return '< 0.01 %';
  return `${value.toFixed(size < 1 ? 2 : size < 10 ? 1 : 0)} %`;
}

// Returns "38 ms", "4.12 s", "12 min 5 s", "3 h 20 min".
function duration(seconds) {
  if (seconds < 1) return `${(1000 * seconds).toFixed(0)} ms`;
  if (seconds < 60) return `${threeDigits(seconds)} s`;
  const whole = Math.round(seconds), hours = Math.floor(whole / 3600), minutes = Math.floor(whole % 3600 / 60);
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}

// Returns "340 ns", "12.3 \u00b5s", "1.24 ms".
function nanoseconds(ns) {
  if (ns < 1e3) return `${threeDigits(ns)} ns`;
  if (ns < 1e6) return `${threeDigits(ns * 1e-3)} \u00b5s`;
  return ns < 1e9 ? `${threeDigits(ns * 1e-6)} ms` : duration(ns * 1e-9);
}
