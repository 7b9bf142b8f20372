// ColorBrewer (Harrower and Brewer, 2003): Blues for the shades of a bar, RdPu for its density, both safe for
// colour-blind readers, in print and on poor screens; YlGnBu for lines.

export const OUTER = "#3182bd"; // beyond the 10th and 90th percentile
export const MIDDLE = "#9ecae1"; // from there to the quartiles
export const INNER = "#deebf7"; // between the quartiles
export const DENSITY = "#c51b8a";
export const INK = "#1b1f24";
export const FAINT = "#5a6572";
export const GRID = "#e3e7ec";
export const ACCENT = "#08519c";
export const LINES = ["#c7e9b4", "#7fcdbb", "#41b6c4", "#1d91c0", "#225ea8", "#0c2c84"] as const;
