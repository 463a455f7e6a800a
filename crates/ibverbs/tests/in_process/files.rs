//! Files of RDMA hardware, by the functions that replace the C library's.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use crate::c::{said, text, zeros};

type Visit = extern "C" fn(*const c_char, *const libc::stat, c_int, *mut c_void) -> c_int;

#[rustfmt::skip]
unsafe extern "C" {
    fn selvedge_path_open(path: *const c_char, flags: c_int, mode: c_int) -> c_int;
    fn selvedge_path_fopen(path: *const c_char, mode: *const c_char) -> *mut libc::FILE;
    fn selvedge_path_stat(path: *const c_char, to: *mut libc::stat) -> c_int;
    fn selvedge_path_access(path: *const c_char, mode: c_int) -> c_int;
    fn selvedge_path_opendir(path: *const c_char) -> *mut libc::DIR;
    fn selvedge_path_realpath(path: *const c_char, to: *mut c_char) -> *mut c_char;
    fn selvedge_path_readlink(path: *const c_char, to: *mut c_char, size: usize) -> isize;
    fn selvedge_path_glob(pattern: *const c_char, flags: c_int, problem: *const (), to: *mut libc::glob_t) -> c_int;
    fn selvedge_path_nftw(path: *const c_char, of: Visit, descriptors: c_int, flags: c_int) -> c_int;
    fn selvedge_path_fts_open(paths: *const *mut c_char, options: c_int, compares: *mut c_void) -> *mut c_void;
    fn selvedge_path_fts_read(walk: *mut c_void) -> *mut Entry;
    fn fts_close(walk: *mut c_void) -> c_int;
}

/// The beginning of C's structure `FTSENT`.
#[repr(C)]
struct Entry {
    nothing: [*mut c_void; 6],
    path: *mut c_char,
}

thread_local! {
    static VISITED: std::cell::RefCell<Vec<String>> = const { std::cell::RefCell::new(Vec::new()) };
}

extern "C" fn visit(path: *const c_char, _: *const libc::stat, _: c_int, depth: *mut c_void) -> c_int {
    assert!(!depth.is_null());
    VISITED.with_borrow_mut(|visited| visited.push(said(path)));
    0
}

#[test]
fn the_tree_is_read_by_every_function() {
    const CLASS: &str = "/sys/class/infiniband";
    let class = text(CLASS);
    // SAFETY: the strings end, and there is room for the results.
    unsafe {
        let mut status: libc::stat = zeros();
        assert_eq!(selvedge_path_stat(class.as_ptr(), &raw mut status), 0);
        assert_eq!(selvedge_path_stat(ptr::null(), &raw mut status), -1, "no path");
        assert_eq!(selvedge_path_access(class.as_ptr(), libc::R_OK), 0);
        assert_eq!(selvedge_path_access(class.as_ptr(), libc::W_OK), -1);
        let folder = selvedge_path_opendir(class.as_ptr());
        assert!(!folder.is_null());
        libc::closedir(folder);

        let pattern = text(&format!("{CLASS}/*/node_type"));
        let mut found: libc::glob_t = zeros();
        assert_eq!(selvedge_path_glob(pattern.as_ptr(), 0, ptr::null(), &raw mut found), 0);
        let file = text(&said(*found.gl_pathv));
        libc::globfree(&raw mut found);
        let mut line = [0_u8; 16];
        let descriptor = selvedge_path_open(file.as_ptr(), libc::O_RDONLY, 0);
        let length = libc::read(descriptor, line.as_mut_ptr().cast(), line.len());
        libc::close(descriptor);
        assert_eq!(&line[..usize::try_from(length).expect("the file is read")], b"1: CA\n");
        assert_eq!(selvedge_path_open(file.as_ptr(), libc::O_WRONLY, 0), -1);
        let stream = selvedge_path_fopen(file.as_ptr(), c"r".as_ptr());
        assert_eq!(libc::fclose(stream), 0);

        let real = selvedge_path_realpath(file.as_ptr(), ptr::null_mut());
        assert!(said(real).starts_with("/sys/devices/"), "{}", said(real));
        libc::free(real.cast());
        let own = text(&format!("/proc/self/fd/{}", selvedge_path_open(class.as_ptr(), libc::O_RDONLY, 0)));
        let mut to = [0_u8; 4_096];
        let length = selvedge_path_readlink(own.as_ptr(), to.as_mut_ptr().cast(), to.len());
        assert_eq!(&to[..usize::try_from(length).expect("a link")], CLASS.as_bytes());

        const PHYSICAL: c_int = 1;
        assert_eq!(selvedge_path_nftw(class.as_ptr(), visit, 4, PHYSICAL), 0);
        VISITED.with_borrow(|visited| assert!(visited.len() > 1 && visited.iter().all(|path| path.starts_with(CLASS))));

        const FTS_PHYSICAL: c_int = 0x10;
        let walk = selvedge_path_fts_open(
            [class.as_ptr().cast_mut(), ptr::null_mut()].as_ptr(),
            FTS_PHYSICAL,
            ptr::null_mut(),
        );
        let first = selvedge_path_fts_read(walk);
        assert_eq!(said((*first).path), CLASS);
        fts_close(walk);
    }
}
