// Draws the figure that the server made. Plotly is a classic script and stands in `window.Plotly`.

const CONFIG = {
  displaylogo: false,
  responsive: true,
  modeBarButtonsToRemove: ["toImage", "select2d", "lasso2d", "autoScale2d"],
  doubleClick: "reset",
};

function heightOf(element) {
  if (element.classList.contains("small")) return 300;
  return element.clientWidth < 560 ? 400 : 480;
}

export async function draw(element, figure, revision) {
  figure.layout.height = heightOf(element);
  // The same revision keeps the reader's zoom and hidden curves when only new points came.
  figure.layout.uirevision = revision;
  await window.Plotly.react(element, figure.data, figure.layout, CONFIG);
}

// An image that can be traced: the forecasts' hashes stand in its foot and in its name.
export async function save(element, format, { hashes, version }) {
  const short = hashes.map((hash) => hash.slice(0, 12));
  const layout = structuredClone(element.layout);
  layout.margin = { ...layout.margin, l: 62, r: 18, t: 12, b: 84 };
  layout.annotations = [
    ...(layout.annotations ?? []),
    {
      text: `rlcast ${version} · forecast ${short.slice(0, 4).join(", ")}${short.length > 4 ? ", …" : ""}`,
      xref: "paper",
      yref: "paper",
      x: 0,
      y: 0,
      yshift: -58,
      xanchor: "left",
      yanchor: "top",
      showarrow: false,
      font: { size: 10 },
    },
  ];
  const image = await window.Plotly.toImage(
    { data: element.data, layout },
    { format, width: 1000, height: 600, scale: format === "png" ? 2 : 1 },
  );
  const link = document.createElement("a");
  link.href = image;
  link.download = `rlcast-${short[0] ?? "points"}.${format}`;
  link.click();
}
