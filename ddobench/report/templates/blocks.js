// Parts of the page that are unpacked when they are opened. Their content was escaped when written.

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function startBlocks(blocks) {
  async function fillBlock(block) {
    const packed = block.dataset.packed;
    if (packed === undefined) return;
    delete block.dataset.packed;
    const content = make("div");
    block.append(content);
    try {
      content.innerHTML = await unpack(packed);
      activate(content);
    } catch {
      content.textContent = "This browser cannot unpack this part; a current browser can.";
    }
  }

  // An address may name a block, or an element of a block that is not unpacked yet.
  async function follow() {
    const name = location.hash.slice(1);
    if (!/^[\w.-]+$/.test(name)) return;
    if (!document.getElementById(name)) await Promise.all(blocks.map(fillBlock));
    const target = document.getElementById(name);
    const block = target?.closest("details.block");
    if (!block) return;
    block.open = true;
    await fillBlock(block);
    target.scrollIntoView();
  }

  for (const block of blocks) {
    block.addEventListener("toggle", () => block.open && fillBlock(block));
  }
  window.addEventListener("hashchange", follow);
  follow();
}
