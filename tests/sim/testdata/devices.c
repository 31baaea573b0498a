// devices.c prints the properties of the devices of a simulated libcuda.

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  void *l = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (l == NULL)
    return 1;
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(l, "cuInit");
  int (*count)(int *) = (int (*)(int *))dlsym(l, "cuDeviceGetCount");
  int (*version)(int *) = (int (*)(int *))dlsym(l, "cuDriverGetVersion");
  int (*attribute)(int *, int, int) = (int (*)(int *, int, int))dlsym(l, "cuDeviceGetAttribute");
  int code = init(0), devices = -1, driver = -1, major = -1, minor = -1;
  count(&devices);
  version(&driver);
  attribute(&major, 75, 0);
  attribute(&minor, 76, 0);
  printf("init %d devices %d driver %d arch %d\n", code, devices, driver,
         major < 0 ? -1 : 10 * major + minor);
  return 0;
}
