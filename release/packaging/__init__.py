"""Makes the packages of a release from one binary a platform. `release/build` is the command line."""
