'use strict';
// Everything works without this script; it only makes it quicker. No request of it leaves the studio's own address.
(() => {
  const root = document.documentElement, $ = id => document.getElementById(id);
  root.classList.add('js');
  const live = words => { const at = $('live'); if (at) { at.textContent = words; } };

  // a message that refuses something is read first
  const fault = $('fault'); if (fault) { fault.focus(); }

  // else the first field, unless the person is somewhere already: an autofocus would then complain
  const field = document.querySelector('[data-first]');
  if (field && !fault && (!document.activeElement || document.activeElement === document.body)) { field.focus(); }

  // forms are sent once; the server would take a second one for the same order anyway
  document.addEventListener('submit', event => {
    const form = event.target;
    if (form.dataset.sent) { event.preventDefault(); return; }
    if (form.querySelector('[aria-disabled=true]') && event.submitter && event.submitter.getAttribute('aria-disabled') === 'true') { event.preventDefault(); live('This is over the limit.'); return; }
    form.dataset.sent = '1';
  });
  addEventListener('pageshow', () => document.querySelectorAll('form[data-sent]').forEach(form => delete form.dataset.sent));

  // dropping a file
  const drop = document.querySelector('[data-drop]');
  if (drop) {
    const input = drop.querySelector('input[type=file]'), bar = drop.querySelector('progress');
    const send = () => {
      if (!input.files.length || drop.dataset.sent) { return; }
      drop.dataset.sent = '1'; bar.hidden = false; live('Copying the file.');
      const request = new XMLHttpRequest(); request.open('POST', drop.action);
      request.upload.addEventListener('progress', event => { if (event.lengthComputable) { bar.value = event.loaded / event.total; } });
      request.addEventListener('load', () => {
        if (request.status === 200 && request.responseURL !== drop.action) { location.assign(request.responseURL); }
        else { delete drop.dataset.sent; drop.submit(); }
      });
      request.addEventListener('error', () => { delete drop.dataset.sent; bar.hidden = true; live('The file did not arrive.'); });
      request.send(new FormData(drop));
    };
    for (const name of ['dragenter', 'dragover']) { addEventListener(name, event => { event.preventDefault(); drop.classList.add('over'); }); }
    addEventListener('dragleave', event => { if (!event.relatedTarget) { drop.classList.remove('over'); } });
    addEventListener('drop', event => { event.preventDefault(); drop.classList.remove('over'); if (event.dataTransfer.files.length) { input.files = event.dataTransfer.files; send(); } });
    input.addEventListener('change', send);
  }

  // progress of a job; a hidden tab does not listen, so that ten tabs do not take all connections
  const job = document.querySelector('[data-events]');
  if (job) {
    let source = null;
    const listen = () => {
      if (source || document.hidden) { return; }
      source = new EventSource(job.dataset.events);
      source.onmessage = event => {
        const told = JSON.parse(event.data), bar = $('job-bar'), words = $('job-words');
        if (['done', 'failed', 'cancelled'].includes(told.state)) { source.close(); location.reload(); return; }
        if (told.total) { bar.value = told.done / told.total; } else { bar.removeAttribute('value'); }
        words.textContent = (told.state === 'waiting' ? 'Waiting for another job' : told.what) + (told.total ? ', ' + Math.round(100 * told.done / told.total) + ' %' : '');
        const charge = $('charge');
        if (charge && told.charged && !charge.dataset.charged) { charge.dataset.charged = '1'; charge.textContent = 'Charged. The debit is in the ledger and stays there, also if you cancel now.'; live(charge.textContent); }
      };
      source.onerror = () => { if (source) { source.close(); source = null; setTimeout(listen, 1500); } };
    };
    document.addEventListener('visibilitychange', () => { if (document.hidden && source) { source.close(); source = null; } else { listen(); } });
    listen();
  }

  // the slider: turns to another stop, all of which are on the page already
  const block = $('data');
  if (block && $('stops')) {
    const data = JSON.parse(block.textContent), radios = [...document.querySelectorAll('#stops input')], SVG = 'http://www.w3.org/2000/svg';
    let at = Math.max(0, radios.findIndex(radio => radio.checked)), timer = 0;
    const slider = document.createElement('input');
    slider.type = 'range'; slider.min = 0; slider.max = radios.length - 1; slider.step = 1; slider.value = at; slider.id = 'slide'; slider.setAttribute('aria-labelledby', 'dial-title'); slider.setAttribute('aria-describedby', 'purse-words');
    $('slider').append(slider);
    $('stops').setAttribute('aria-hidden', 'true'); radios.forEach(radio => { radio.tabIndex = -1; });
    const facts = (list, rows) => list.replaceChildren(...rows.map(([value, words, range]) => {
      const row = document.createElement('div'), dt = document.createElement('dt'), dd = document.createElement('dd');
      dt.textContent = words + ' '; dd.textContent = value;
      if (range) { const span = document.createElement('span'); span.textContent = '(' + range + ')'; dt.append(span); }
      row.append(dt, dd); return row;
    }));
    const hint = (id, words) => { const at = $(id); at.textContent = words; at.hidden = !words; };
    const turn = (to, say) => {
      at = to; const told = data.stops[at];
      radios[at].checked = true; slider.value = at; slider.setAttribute('aria-valuetext', told.label);
      $('stop-out').textContent = radios[at].nextElementSibling.textContent;
      document.querySelectorAll('.stop').forEach(part => part.classList.toggle('on', +part.dataset.stop === at));
      document.querySelectorAll('.caption').forEach(part => { part.textContent = told.caption; });
      document.querySelectorAll('svg.out').forEach(map => map.setAttribute('aria-label', map.getAttribute('aria-label').replace(/what would leave, [^.]*(\.\d[^.]*)*\./, 'what would leave, ' + told.caption + '.')));
      facts($('errors'), told.errors); facts($('odds'), told.odds); hint('worse', told.worse); hint('refused', told.refused);
      $('promise').textContent = told.promise; $('expected').textContent = told.expected; $('bar-eps').textContent = told.bar; $('bar-words').textContent = told.bar_words;
      const dots = $('dots'); if (dots && told.dots !== null) { dots.setAttribute('aria-label', 'Of 100 guesses, 50 are right by chance and at most ' + told.dots + ' are right for any attacker.'); dots.querySelectorAll('circle').forEach((dot, k) => dot.setAttribute('class', k < 50 ? 'c0' : k < told.dots ? 'c1' : 'c2')); }
      const purse = $('purse');
      if (purse) {
        purse.setAttribute('aria-label', told.purse.about); purse.querySelectorAll(':scope > rect').forEach(bar => bar.remove());
        for (const [role, low, high] of told.purse.bars) { const bar = document.createElementNS(SVG, 'rect'); bar.setAttribute('x', 600 * low); bar.setAttribute('width', Math.max(0, 600 * (high - low))); bar.setAttribute('y', 0); bar.setAttribute('height', 44); bar.setAttribute('class', role); if (role === 'u-over') { bar.setAttribute('fill', 'url(#hatch-purse)'); } purse.append(bar); }
      }
      $('purse-words').replaceChildren(...told.purse.words.map(([role, words]) => { const span = document.createElement('span'); span.className = role === 'r' ? 'refused' : 'sw-' + role; span.textContent = words; return span; }));
      const go = $('go'); if (told.purse.allowed) { go.removeAttribute('aria-disabled'); } else { go.setAttribute('aria-disabled', 'true'); }
      document.querySelectorAll('[data-copy-stop]').forEach(copy => { copy.value = radios[at].value; });
      if (say) { clearTimeout(timer); timer = setTimeout(() => live(told.spoken), 350); }
    };
    slider.addEventListener('input', () => turn(+slider.value, true));
    radios.forEach((radio, k) => radio.addEventListener('change', () => turn(k, true)));
    document.querySelectorAll('.source input').forEach(radio => radio.addEventListener('change', () => $('dial-form').requestSubmit()));
    turn(at, false);

    // one layer at a time
    const layers = [...document.querySelectorAll('.layer')], picks = [...document.querySelectorAll('#pick input')];
    const pick = () => { const wanted = picks.find(radio => radio.checked); layers.forEach(layer => layer.classList.toggle('on', !wanted || layer.dataset.layer === wanted.value)); };
    picks.forEach(radio => radio.addEventListener('change', pick)); pick();

    // a cursor over the cells: mouse or arrow keys tell the figures of both sides
    const map = document.querySelector('svg[data-rows]');
    if (map) {
      const rows = +map.dataset.rows, columns = +map.dataset.columns, [, , width, height] = map.getAttribute('viewBox').split(' ').map(Number);
      const cursor = document.createElementNS(SVG, 'rect'), before = new Map(data.original);
      let row = rows >> 1, column = columns >> 1;
      cursor.setAttribute('class', 'cursor'); cursor.setAttribute('width', width / columns); cursor.setAttribute('height', height / rows); cursor.setAttribute('visibility', 'hidden'); map.append(cursor);
      map.setAttribute('tabindex', '0'); map.setAttribute('aria-describedby', 'cell-words');
      const percent = value => ((value || 0) / 1000).toFixed(2) + ' %';
      const tell = say => {
        cursor.setAttribute('visibility', 'visible'); cursor.setAttribute('x', column * width / columns); cursor.setAttribute('y', (rows - 1 - row) * height / rows);
        const cell = row * columns + column, after = new Map(data.cells[at]);
        const words = 'Cell ' + (column + 1) + ' from the west, ' + (row + 1) + ' from the south: ' + percent(before.get(cell)) + ' of the points in the data, ' + percent(after.get(cell)) + ' would leave.';
        $('cell-words').textContent = words; if (say) { live(words); }
      };
      map.addEventListener('keydown', event => {
        const step = {ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
        if (!step) { return; }
        event.preventDefault(); row = Math.min(rows - 1, Math.max(0, row + step[0])); column = Math.min(columns - 1, Math.max(0, column + step[1])); tell(true);
      });
      map.addEventListener('focus', () => tell(true));
      map.addEventListener('mousemove', event => { const box = map.getBoundingClientRect(); column = Math.min(columns - 1, Math.floor(columns * (event.clientX - box.left) / box.width)); row = rows - 1 - Math.min(rows - 1, Math.floor(rows * (event.clientY - box.top) / box.height)); if (row >= 0 && column >= 0) { tell(false); } });
    }
  }
})();
