// The script of the report: unpacking, sorting, filtering, copying. Words of kernels are only ever read as text and
// written as text; what is markup was written by the program, packed or not.
'use strict';
const attest = {
  canUnpack: 'DecompressionStream' in window,
  // The text that a script element holds in base64 and gzip.
  unpack: element => {
    const bytes = Uint8Array.from(atob(element.textContent), c => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
  }
};
(() => {
  // On paper nothing can be unfolded.
  let unfolded = [];
  addEventListener('beforeprint', () => {
    unfolded = Array.from(document.querySelectorAll('details:not([open])'));
    for (const one of unfolded) one.open = true;
  });
  addEventListener('afterprint', () => {
    for (const one of unfolded) one.open = false;
    unfolded = [];
  });
})();
(async () => {
  const packed = Array.from(document.querySelectorAll('script.packed'));
  if (attest.canUnpack) {
    await Promise.all(packed.map(async element => {
      const html = await attest.unpack(element);
      element.replaceWith(document.createRange().createContextualFragment(html));
    }));
  } else {
    for (const element of packed)
      element.replaceWith('This browser cannot unpack this part of the page; one of 2023 or later can.');
  }
  const make = (tag, attributes, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  // A number as the tables write it; null for a dash, which stands last whichever way it is sorted.
  const sizeOf = text => {
    const bare = text.replace('−', '-').replace(/[≤>%,\s]/g, '');
    if (bare === '' || bare === '–') return null;
    if (bare === 'inf') return Infinity;
    const size = parseFloat(bare);
    // NaN is worse than anything.
    return Number.isNaN(size) ? Infinity : size;
  };
  const said = make('p', {'role': 'status', 'class': 'unseen'});

  // Above them may stand a row of headings of groups.
  const headingsOf = table => table.tHead.rows[table.tHead.rows.length - 1].cells;
  const sortBy = (table, column, heading) => {
    const isNumber = heading.classList.contains('number');
    const before = heading.getAttribute('aria-sort');
    // Numbers begin with the largest, which is the worst; words with the first.
    const ascending = before === null ? !isNumber : before === 'descending';
    const body = table.tBodies[0];
    const keyed = Array.from(body.rows, row => {
      const cell = row.cells[column];
      // What is folded in a cell is no part of what is sorted by.
      const text = (cell.querySelector('summary') ?? cell).textContent.trim();
      return {row, key: isNumber ? sizeOf(text) : text};
    });
    const sign = ascending ? 1 : -1;
    keyed.sort((a, b) => {
      if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
      if (!isNumber) return sign * a.key.localeCompare(b.key, 'en', {numeric: true});
      return a.key === b.key ? 0 : sign * (a.key < b.key ? -1 : 1);
    });
    body.append(...keyed.map(one => one.row));
    for (const other of headingsOf(table)) other.removeAttribute('aria-sort');
    heading.setAttribute('aria-sort', ascending ? 'ascending' : 'descending');
    said.textContent = 'Sorted by ' + heading.textContent + (ascending ? ', ascending' : ', descending');
  };
  for (const table of document.querySelectorAll('table.sortable')) {
    Array.from(headingsOf(table)).forEach((heading, column) => {
      const button = make('button', {'type': 'button'}, ...heading.childNodes);
      button.addEventListener('click', () => sortBy(table, column, heading));
      heading.append(button);
    });
  }

  const tagged = Array.from(document.querySelectorAll('[data-kernel], [data-property], [data-verdict]'));
  const rows = tagged.filter(element => element.matches('tr, article'));
  const fieldOf = {};
  const shown = make('output', {'class': 'shown'});
  const words = text => text.toLowerCase().split(/\s+/).filter(word => word !== '');
  const apply = () => {
    const kernel = words(fieldOf.kernel.value), property = words(fieldOf.property.value);
    const verdict = fieldOf.verdict.value;
    // What is looked for is to be seen.
    if (kernel.length + property.length > 0 || verdict !== '')
      for (const fold of document.querySelectorAll('details.folded')) fold.open = true;
    const misses = (text, wanted) => text !== undefined && !wanted.every(word => text.toLowerCase().includes(word));
    for (const element of tagged) {
      const {kernel: ofKernel, property: ofProperty, verdict: ofVerdict} = element.dataset;
      element.hidden = misses(ofKernel, kernel) || misses(ofProperty, property) ||
        (verdict !== '' && ofVerdict !== undefined && ofVerdict !== verdict);
    }
    for (const group of document.querySelectorAll('details.kernel'))
      group.hidden ||= !group.querySelector('tr[data-property]:not([hidden])');
    for (const table of document.querySelectorAll('table.matrix')) {
      const heads = Array.from(headingsOf(table));
      const changed = heads.filter(head => (head.dataset.gone === 'yes') !== head.hidden);
      for (const head of changed) {
        for (const row of table.tBodies[0].rows) row.cells[head.cellIndex].hidden = head.hidden;
        head.dataset.gone = head.hidden ? 'yes' : 'no';
      }
    }
    const left = rows.filter(row => !row.hidden).length;
    shown.textContent = left === rows.length ? '' : left + ' of ' + rows.length + ' rows and findings match';
  };
  let waiting = 0;
  const later = () => {
    clearTimeout(waiting);
    waiting = setTimeout(apply, 120);
  };
  const field = (name, label, input) => {
    fieldOf[name] = input;
    input.addEventListener('input', later);
    return make('label', {}, label, input);
  };
  if (rows.length > 1) {
    const verdicts = make('select', {}, make('option', {'value': ''}, 'any verdict'));
    for (const verdict of ['violated', 'inconclusive', 'held', 'skipped'])
      verdicts.append(make('option', {'value': verdict}, verdict));
    const clear = make('button', {'type': 'reset'}, 'Clear');
    const form = make('form', {'class': 'filter', 'role': 'search', 'aria-label': 'Filter of the whole page'},
      field('kernel', 'Kernel, dtype ', make('input', {'type': 'search', 'size': '14'})),
      field('property', 'Property ', make('input', {'type': 'search', 'size': '14'})),
      field('verdict', 'Verdict ', verdicts), clear, shown);
    form.addEventListener('submit', event => event.preventDefault());
    form.addEventListener('reset', () => setTimeout(apply));
    document.querySelector('nav').after(form);
  }
  document.body.append(said);

  const offerCopy = line => {
    if (line.dataset.copies === 'yes') return;
    line.dataset.copies = 'yes';
    const button = make('button', {'type': 'button', 'class': 'copy'}, 'Copy');
    const text = line.textContent;
    button.addEventListener('click', async () => {
      getSelection().selectAllChildren(line);
      try {
        await navigator.clipboard.writeText(text);
        said.textContent = 'Copied';
        button.textContent = 'Copied';
      } catch {
        button.textContent = 'Selected';
      }
    });
    line.after(button);
  };
  document.querySelectorAll('pre.line').forEach(offerCopy);
  document.addEventListener('toggle', event => {
    if (event.target.open) event.target.querySelectorAll('code.line').forEach(offerCopy);
  }, true);
  // A link to what is folded away unfolds it.
  const unfold = () => {
    const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
    for (const fold of target?.querySelectorAll(':scope > details.folded') ?? []) fold.open = true;
    for (let around = target; around; around = around.parentElement)
      if (around.localName === 'details') around.open = true;
    return target;
  };
  addEventListener('hashchange', () => unfold()?.scrollIntoView());
  const target = unfold();
  // The browser looked for it before it was there.
  if (packed.length > 0) target?.scrollIntoView();
  document.documentElement.dataset.whole = 'yes';
})();
