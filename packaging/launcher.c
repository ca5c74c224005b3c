/* The executable of the bundle. It loads libpython and runs the app in this process.
 *
 * macOS requires that the process of the bundle's own executable owns the windows. A script, or an exec of another
 * program, would not work. The interpreter is in Contents/Resources/python. The user's site-packages, the working
 * folder and PYTHON... variables have no effect on what Python imports.
 *
 * The build defines PYTHON_VERSION ("3.12") and MODULE ("app").
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __APPLE__
#include <mach-o/dyld.h>
#define LIBRARY "lib/libpython" PYTHON_VERSION ".dylib"
#else
#define LIBRARY "lib/libpython" PYTHON_VERSION ".so.1.0"
#endif

#define EX_CONFIG 78

extern char **environ;

typedef int (*python_main)(int, char **);

static int fail(const char *what, const char *why) {
    fprintf(stderr, "Rejoinder cannot start: %s (%s). Install the app again.\n", what, why ? why : "unknown");
    return EX_CONFIG;
}

/* Writes the path of this program, with links resolved, to a buffer of PATH_MAX. Returns 0 on failure. */
static int own_path(char *path) {
    char raw[PATH_MAX];
#ifdef __APPLE__
    uint32_t size = sizeof raw;
    if (_NSGetExecutablePath(raw, &size)) return 0;
#else
    ssize_t length = readlink("/proc/self/exe", raw, sizeof raw - 1);
    if (length < 0) return 0;
    raw[length] = 0;
#endif
    return realpath(raw, path) != NULL;
}

static void cut_last(char *path) {
    char *slash = strrchr(path, '/');
    if (slash) *slash = 0;
}

static void forget_python_variables(void) {
    for (char **entry = environ; *entry;) {
        char name[64];
        size_t length = strcspn(*entry, "=");
        if (strncmp(*entry, "PYTHON", 6) == 0 && length < sizeof name) {
            memcpy(name, *entry, length);
            name[length] = 0;
            unsetenv(name);
            entry = environ; /* unsetenv has moved the entries */
        } else {
            entry++;
        }
    }
}

/* Finder on older systems passes a process serial number (-psn_...), which Python must not get. */
static int is_from_finder(const char *argument) { return strncmp(argument, "-psn_", 5) == 0; }

/* True if the arguments are options of the Python interpreter. multiprocessing, for example, runs sys.executable
 * with such options, and sys.executable is this program. */
static int is_for_python(int argc, char **argv) {
    return argc > 1 && argv[1][0] == '-' && argv[1][1] && argv[1][1] != '-' && argv[1][1] != 'h' &&
           !is_from_finder(argv[1]);
}

/* True for the option that the app passes when it starts a process of its own (engine/worker/interpreter.py). With it
 * Python would ignore PYTHONHOME and not find its library. This program has removed all other PYTHON... variables, and
 * PYTHONSAFEPATH does the rest. */
static int is_isolation(const char *argument) { return strcmp(argument, "-EP") == 0; }

int main(int argc, char **argv) {
    static char self[PATH_MAX], contents[PATH_MAX], home[PATH_MAX + 32], library[PATH_MAX + 96];
    if (!own_path(self)) return fail("its own place is unknown", NULL);
    strcpy(contents, self);
    cut_last(contents); /* drop the file's name */
    cut_last(contents); /* drop MacOS */
    snprintf(home, sizeof home, "%s/Resources/python", contents);
    snprintf(library, sizeof library, "%s/" LIBRARY, home);

    forget_python_variables();
    unsetenv("__PYVENV_LAUNCHER__"); /* Python on macOS takes its own path from this variable */
    setenv("PYTHONHOME", home, 1);
    setenv("PYTHONNOUSERSITE", "1", 1);
    setenv("PYTHONSAFEPATH", "1", 1);
    setenv("PYTHONDONTWRITEBYTECODE", "1", 1); /* a new file would break the seal */
    setenv("PYTHONUTF8", "1", 1);

    void *python = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    if (!python) return fail("its interpreter cannot be loaded", dlerror());
    python_main run = (python_main)dlsym(python, "Py_BytesMain");
    if (!run) return fail("its interpreter has no entry", dlerror());

    char **arguments = calloc((size_t)argc + 3, sizeof *arguments);
    if (!arguments) return fail("there is no memory", NULL);
    int count = 0;
    arguments[count++] = self;
    if (!is_for_python(argc, argv)) {
        arguments[count++] = "-m";
        arguments[count++] = MODULE;
    }
    for (int i = 1; i < argc; i++)
        if (!is_from_finder(argv[i]) && !(i == 1 && is_isolation(argv[i]))) arguments[count++] = argv[i];
    return run(count, arguments);
}
