// Filters the list of recipes and runs while one types.

export function watchChooser(form) {
  const search = document.getElementById("search");

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const group of form.querySelectorAll("#catalogue .group")) {
      let visible = 0;
      for (const item of group.querySelectorAll(".pick")) {
        const matches = words.every((word) => item.dataset.search.includes(word));
        item.hidden = !matches;
        visible += matches;
      }
      group.hidden = visible === 0;
      found += visible;
    }
    document.getElementById("nothing-found").hidden = found > 0;
  }

  search.addEventListener("input", filter);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault(); // would send the form
    if (event.key === "Escape") {
      search.value = "";
      filter();
    }
  });
  return { filter };
}
