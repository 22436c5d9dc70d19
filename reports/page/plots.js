// Unpacks Vega and draws the plots. Where a browser cannot, the figures say so; the tables have the numbers.
'use strict';
(() => {
  const placeOf = i => document.getElementById('plot-' + i);
  const specs = JSON.parse(document.getElementById('plot-data').textContent);
  const draw = () => specs.forEach((spec, i) => {
    new vega.View(vega.parse(spec), {renderer: 'svg', container: placeOf(i)}).runAsync().then(() => {
      placeOf(i).dataset.drawn = 'yes';
    });
  });
  if (!attest.canUnpack) {
    specs.forEach((spec, i) => placeOf(i).textContent = 'This browser cannot unpack what draws the plot; one of 2023 or later can.');
    return;
  }
  // What the page's policy lets run has this script's nonce.
  const nonce = document.currentScript.nonce;
  attest.unpack(document.getElementById('vega')).then(source => {
    const script = document.createElement('script');
    script.nonce = nonce;
    script.textContent = source;
    document.head.append(script);
    draw();
  });
})();
