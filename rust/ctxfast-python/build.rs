//! Passes on what is known of the Python version (`cfg(Py_3_14)`), for the one file that reads Python's memory.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
