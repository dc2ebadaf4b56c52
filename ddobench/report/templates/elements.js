// Elements and numbers. Data always become text, never markup.

const DASH = "\u2013";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function formatNumber(number) {
  if (number === null || number === undefined) return DASH;
  const size = Math.abs(number);
  const text = size !== 0 && (size < 1e-3 || size >= 1e6)
    ? number.toExponential(2)
    : String(Number(number.toPrecision(4)));
  return text.replaceAll("-", "\u2212");
}

function formatPercent(share) {
  return share === null || share === undefined ? DASH : `${formatNumber(100 * share)} %`;
}
