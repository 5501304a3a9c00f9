"""The platform is always known."""


class _Platform:
    def is_unspecified(self):
        return False


current_platform = _Platform()
