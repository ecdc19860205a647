// How smoothly a chart moves.

import type { Page } from "playwright-core";

/** Frames per second while a pointer drags the chart. */
export async function framesPanned(page: Page): Promise<string> {
  const { x, y, width } = (await page.locator(".u-over").boundingBox())!;
  await page.mouse.move(x + width / 2, y + 50);
  await page.mouse.down();
  const counted = page.evaluate(async () => {
    const begun = performance.now();
    let frames = 0;
    for (; frames < 60; frames++) await new Promise(requestAnimationFrame);
    return (frames * 1000) / (performance.now() - begun);
  });
  for (let step = 0; step < 60; step++) await page.mouse.move(x + width / 2 + step * 2, y + 50);
  const frames = await counted;
  await page.mouse.up();
  return frames.toFixed(0);
}
