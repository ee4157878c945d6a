//! Tables of the edge's pure parts: paths, names and origins, pages, tokens, which tasks are shown. What they do together is tested from outside.

mod banner;
mod cors;
mod filenames;
mod fuzz;
mod host_check;
mod memory;
mod ranges;
mod routes;
mod window;
