// The page without runs: it opens the real one as soon as the first run is there.
import "./copy.js";
import { listen } from "./live.js";

listen("/live", {
  onState: () => {},
  onFresh: async () => {
    const catalogue = await (await fetch("/compare/catalogue")).text();
    if (catalogue.includes("<fieldset")) location.reload();
  },
  onEvent: (kind) => kind === "run.created" && location.reload(),
});
