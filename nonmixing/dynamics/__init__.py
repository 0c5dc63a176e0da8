"""Routes from a start to a trajectory: closed forms, the integrated flow, discrete steps.

None of the routes imports another; each returns a `nonmixing.dynamics.trajectory.Trajectory`.
"""
